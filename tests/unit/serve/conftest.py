"""A study on a server, and one of its analysts."""

import pytest

import discreet
from serving import folder_in_memory, running, served


@pytest.fixture(scope="module")
def site():
    with folder_in_memory() as folder, served(folder, epsilon=100) as served_study:
        yield served_study


@pytest.fixture(scope="module")
def url(site):
    with running(site) as address:
        yield address


@pytest.fixture
def remote(site, url):
    with discreet.connect(url, site.tokens["ann"]) as study:
        yield study
