"""The files of docs/how-to/run-a-server.md and the Containerfile are what they say; test_console
runs the commands.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from conftest import absent
from discreet.cli.app import app
from discreet.serve.limits import Limits
from discreet.serve.operation.metrics import _HELP, hashed
from discreet.serve.schema import LONGEST
from discreet.serve.server import Endpoint
from serving import Client, served

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "run-a-server.md").read_text("utf-8")
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def options(words: list[str], folder: Path) -> dict[str, Any]:
    """What the command line makes of the words after `discreet`; it refuses what it does not know."""
    for name in ("people.toml", "metrics.key"):
        (folder / name).touch()
    words = [
        str(folder / word) if word in ("people.toml", "metrics.key") else word for word in words
    ]
    command: Any = get_command(app)
    for name in (words[0], "run"):
        command = command.commands[name]
    with command.make_context("run", words[1:]) as context:
        return dict(context.params)


def endpoint(given: dict[str, Any]) -> Endpoint:
    """The endpoint of these options, which is refused if it would be unsafe."""
    names = ("host", "port", "certfile", "keyfile", "insecure_public")
    return Endpoint(
        allowed_hosts=tuple(given["allowed_host"]), **{name: given[name] for name in names}
    )


def test_the_unit_starts_a_server_and_gives_it_time_to_end(tmp_path):
    unit = configparser.ConfigParser(delimiters="=", interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(FILES["discreet.service"])
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/opt/discreet/bin/discreet"
    given = options(words, tmp_path)
    assert endpoint(given).hosts >= {"data.example.org", "127.0.0.1"}
    assert given["log_format"] == "json"
    assert int(service["TimeoutStopSec"]) > given["grace"] + given["patience"]
    assert (service["KillSignal"], service["UMask"]) == ("SIGTERM", "0077")
    assert service["WorkingDirectory"] in service["ReadWritePaths"].split()
    assert service["RestartPreventExitStatus"].split() == ["2", "4"]


def blocks(text: str) -> Iterator[tuple[str, ...]]:
    """The words of each directive of a configuration in braces, below those that it stands in;
    braces must match.
    """
    above: list[str] = []
    for line in text.splitlines():
        words = line.split("#")[0].strip()
        if words == "}":
            above.pop()
        elif words.endswith("{"):
            above.append(words.removesuffix("{").strip())
        elif words:
            yield (*above, words)
    assert not above


def test_nginx_passes_the_name_on_and_keeps_the_metrics_inside(tmp_path):
    directives = list(blocks(FILES["discreet.conf"]))
    assert all(each[-1].endswith(";") for each in directives)
    within = {each[:-1]: [] for each in directives}
    for each in directives:
        within[each[:-1]].append(each[-1].rstrip(";"))
    port = options(
        shlex.split(re.search(r"ExecStart=\S+ (.*)", FILES["discreet.service"])[1]), tmp_path
    )["port"]
    proxied = within["server", "location /"]
    assert {
        f"proxy_pass http://127.0.0.1:{port}",
        "proxy_set_header Host $host",
        "proxy_http_version 1.1",
    } <= set(proxied)
    # a whole request is read before it is passed on
    assert "proxy_request_buffering off" not in proxied
    assert within["server", "location = /metrics"] == ["return 404"]
    zones = {
        each[-1].split()[1]: each[-1].split()[2]
        for each in directives
        if each[-1].startswith("limit_conn_zone")
    }
    limits = {
        words.split()[1]: int(words.split()[2])
        for words in proxied
        if words.startswith("limit_conn ")
    }
    # a team behind one address has a limit for each of its tokens
    by_variable = {
        variable: limits[zone.partition("=")[2].partition(":")[0]]
        for variable, zone in zones.items()
    }
    assert by_variable["$binary_remote_addr"] >= 10 * by_variable["$http_authorization"] > 0
    assert f"client_max_body_size {LONGEST // 1024}k" in within["server",]
    assert "server_name data.example.org" in within["server",]


def test_caddy_does_the_same():
    directives = list(blocks(FILES["Caddyfile"]))
    site = "data.example.org"
    assert (site, "respond /metrics 404") in directives
    assert (site, "request_body", f"max_size {LONGEST // 1024}KiB") in directives
    assert (
        site,
        "reverse_proxy 127.0.0.1:8000",
        f"request_buffers {LONGEST // 1024}KiB",
    ) in directives


def test_prometheus_asks_with_the_key_and_its_rules_name_metrics_that_exist():
    [job] = yaml.safe_load(FILES["prometheus.yml"])["scrape_configs"]
    assert "credentials_file" in job["authorization"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8000"]}]
    [group] = yaml.safe_load(FILES["alerts.yml"])["groups"]
    named = {name for rule in group["rules"] for name in re.findall(r"discreet_\w+", rule["expr"])}
    known = {f"{family}{part}" for family in _HELP for part in ("", "_sum", "_count", "_bucket")}
    assert named
    assert named <= known


def test_limits_that_the_page_of_the_server_names_are_those_that_hold():
    text, limits = (ROOT / "docs" / "serve.md").read_text("utf-8"), Limits()
    rows = {option: value for value, option in re.findall(r"\| ([^|]+) \| `--([a-z-]+)` \|", text)}
    for option in (
        "patience",
        "reading",
        "connections",
        "threads",
        "most-numbers",
        "releases-per-day",
        "at-once",
    ):
        shown = float(rows[option].replace(",", "").removesuffix(" s"))
        assert shown == getattr(limits, option.replace("-", "_")), option
    assert rows["pace"] == f"{limits.pace // 1024} KiB a second"


def instructions() -> list[tuple[str, str]]:
    lines = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    pairs = [line.partition(" ") for line in lines if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in pairs]


def test_the_image_is_built_from_what_a_checkout_has():
    made = instructions()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
    }
    assert {name for name, _ in made} <= known | {"ENTRYPOINT", "CMD"}
    copied = [
        word
        for name, rest in made
        if name == "COPY" and "--from" not in rest
        for word in rest.split()[:-1]
    ]
    assert {"pyproject.toml", "src", project["readme"], *project["license-files"]} <= set(copied)
    assert all((ROOT / word).exists() for word in copied)
    ignored = (ROOT / ".containerignore").read_text("utf-8").split()
    assert ignored[0] == "*"
    assert set(ignored[1:]) == {f"!{word}" for word in copied}
    [extras] = re.findall(
        r'pip install [^"]*"\.\[([\w,]+)\]"', (ROOT / "Containerfile").read_text("utf-8")
    )
    assert {"serve", *extras.split(",")} <= set(project["optional-dependencies"])
    versions = {
        rest.split()[0].removeprefix("python:").removesuffix("-slim")
        for name, rest in made
        if name == "FROM"
    }
    assert [f"Programming Language :: Python :: {version}" for version in versions] == [
        each for each in project["classifiers"] if each.endswith(tuple(versions))
    ]


def test_the_image_serves_as_nobody_special_and_is_asked_whether_it_is_ready(tmp_path):
    made = dict(instructions())  # the last of each counts
    assert made["USER"] == "discreet"
    assert made["STOPSIGNAL"] == "SIGTERM"
    assert [*json.loads(made["ENTRYPOINT"])] == ["discreet"]
    given = options(json.loads(made["CMD"]), tmp_path)
    assert endpoint(given).hosts >= {"localhost"}
    assert made["EXPOSE"] == str(given["port"])
    probe = json.loads(made["HEALTHCHECK"].partition("CMD ")[2])[-1]
    compile(probe, "probe", "exec")
    assert f"http://localhost:{given['port']}/readyz" in probe


@pytest.mark.parametrize("broken", ["server {\n}\n}", "a {\n b;\n"])
def test_braces_that_do_not_match_are_caught(broken):
    with pytest.raises((AssertionError, IndexError)):
        list(blocks(broken))


def test_an_option_that_does_not_exist_is_caught(tmp_path):
    with pytest.raises(Exception, match="No such option"):
        options(["serve", "people.toml", "--no-such"], tmp_path)


def series(folder: Path) -> tuple[str, ...]:
    """What a scrape of a new server shows of answers that failed, as it is before the first."""
    with served(folder, metrics_key=hashed("k" * 32)) as site:
        text = (
            Client(site.app, site.portal, {"authorization": f"Bearer {'k' * 32}"})
            .get("/metrics")
            .text
        )
    return tuple(
        re.findall(r'^(discreet_requests_total\{[^}]*status="503"\}) \d+$', text, re.MULTILINE)
    )


@pytest.fixture(scope="module")
def promtool() -> str:
    tool = shutil.which("promtool")
    if tool is None:
        absent("no promtool: apt install prometheus")
    return tool


def told(promtool: str, folder: Path, test: dict[str, Any]) -> str:
    """What promtool says of the rules of the page in a case; nothing if they do what is expected."""
    (folder / "alerts.yml").write_text(FILES["alerts.yml"], "utf-8")
    case = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", **test}],
    }
    (folder / "case.yml").write_text(json.dumps(case), "utf-8")
    command = [promtool, "test", "rules", "case.yml"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_promtool_reads_the_rules(promtool, tmp_path):
    (tmp_path / "alerts.yml").write_text(FILES["alerts.yml"], "utf-8")
    subprocess.run(
        [promtool, "check", "rules", "alerts.yml"], cwd=tmp_path, check=True, capture_output=True
    )


def fires(alert: str, labels: dict[str, str], at: str, *, expected: bool = True) -> dict[str, Any]:
    return {
        "eval_time": at,
        "alertname": alert,
        "exp_alerts": [{"exp_labels": labels}] if expected else [],
    }


def test_the_first_failure_of_a_route_raises_the_alert(promtool, tmp_path):
    """The series that a server has from its start; without its 0, Prometheus would see no increase."""
    name = 'discreet_requests_total{route="/release",status="503"}'
    assert name in series(tmp_path)
    labels = {"route": "/release", "status": "503"}
    case = {
        "input_series": [{"series": name, "values": "0x5 1x10"}],
        "alert_rule_test": [
            fires("DiscreetFails", labels, "5m", expected=False),
            fires("DiscreetFails", labels, "7m"),
        ],
    }
    assert not told(promtool, tmp_path, case)
    unborn = {
        "input_series": [{"series": name, "values": "_x5 1x10"}],
        "alert_rule_test": [fires("DiscreetFails", labels, "7m")],
    }
    assert "FAILED" in told(promtool, tmp_path, unborn)


def test_a_part_that_cannot_be_used_raises_the_alert(promtool, tmp_path):
    labels = {"part": "source", "study": "people"}
    case = {
        "input_series": [
            {"series": 'discreet_ready{part="source",study="people"}', "values": "1x3 0x10"}
        ],
        "alert_rule_test": [
            fires("DiscreetIsNotReady", labels, "5m", expected=False),
            fires("DiscreetIsNotReady", labels, "7m"),
        ],
    }
    assert not told(promtool, tmp_path, case)
