// Exact rationals, as the server writes them ("3/5"), and numbers as people read them.

const UNIT = 1_000_000_000n; // the ledger counts in 10⁻⁹ ε, and charges rounded up

export function exact(text) {
  const [above, below = "1"] = text.split("/");
  return { above: BigInt(above), below: BigInt(below) };
}

export const minus = (a, b) => ({ above: a.above * b.below - b.above * a.below, below: a.below * b.below });
export const isZero = (a) => a.above === 0n;
export const isLess = (a, b) => a.above * b.below < b.above * a.below;
export const toNumber = (a) => Number((a.above * 10n ** 15n) / a.below) / 1e15;

export function share(part, whole) {
  if (isZero(whole)) return 0;
  return Math.min(1, Math.max(0, toNumber({ above: part.above * whole.below, below: part.below * whole.above })));
}

// How many times a price fits into what is left.
export function times(left, price) {
  const charge = (price.above * UNIT + price.below - 1n) / price.below;
  return charge === 0n ? null : (left.above * UNIT) / left.below / charge;
}

// ε with at most six significant digits.
export function epsilonText(value) {
  return plain(Number(toNumber(value).toPrecision(6)));
}

// A number with two significant digits, so that a slider stops at round numbers.
export function rounded(number) {
  return Number(number.toPrecision(2));
}

// A number as text without an exponent.
export function plain(number) {
  return number !== 0 && Math.abs(number) < 1e-6 ? number.toFixed(12).replace(/0+$/, "") : String(number);
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const AS_DECIMAL = new Map();

export function decimals(number, digits) {
  if (!AS_DECIMAL.has(digits)) {
    AS_DECIMAL.set(digits, new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  }
  return AS_DECIMAL.get(digits).format(number);
}

// Three significant digits, with thousands separators.
export function short(number) {
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e10 || size < 1e-4)) {
    const [digits, power] = number.toExponential(2).split("e");
    return `${Number(digits)} × 10${[...String(Number(power))].map((sign) => RAISED[sign]).join("")}`;
  }
  return decimals(number, Number.isInteger(number) ? 0 : digitsFor(size, 3));
}

// Decimals for which an error of this size has two significant digits.
export function digitsFor(size, wanted = 2) {
  if (!(size > 0)) return 0;
  return Math.min(8, Math.max(0, wanted - 1 - Math.floor(Math.log10(size))));
}

// A number with so many decimals: rounded to the nearest, or to a side, so that an interval holds at least as often.
export function rounding(number, digits, side = 0) {
  const unit = 10 ** digits;
  const steps = Math.round(number * unit);
  return (side * (steps / unit) < side * number ? steps + side : steps) / unit + 0; // + 0 turns −0 into 0
}

export const many = (count, word) => `${count.toLocaleString("en")} ${word}${BigInt(count) === 1n ? "" : "s"}`;
