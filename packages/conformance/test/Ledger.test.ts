import { assert, it } from "@effect/vitest"
import * as Ledger from "../src/Ledger.ts"

const ledger: Ledger.Ledger = {
  name: "acme 1.0",
  cases: 7,
  lines: [
    { group: "one", name: "a", outcome: { _tag: "Passed" }, measured: 1 },
    { group: "two", name: "b", outcome: { _tag: "Failed", error: new Error("expected 1\nwith details") }, measured: 2 },
    { group: "one", name: "c", outcome: { _tag: "NotApplicable", missing: "peek" }, measured: 1 },
    { group: "two", name: "d", outcome: { _tag: "Failed", error: "text" }, measured: 1 },
    { group: "two", name: "e", outcome: { _tag: "Passed" }, measured: 3 },
    { group: "two", name: "f", outcome: { _tag: "NotMeasurable", reason: "a retry: 900 ms late" }, measured: 5 }
  ]
}

it("renders a line per case by group, and totals that leave nothing out", () => {
  assert.strictEqual(
    Ledger.render(ledger),
    [
      "conformance of acme 1.0",
      "  one",
      "    pass  a",
      "    n/a   c (missing: peek)",
      "  two",
      "    FAIL  b (measured 2 times; expected 1)",
      "    FAIL  d (text)",
      "    pass  e (measured 3 times)",
      "    ????  f (measured 5 times; not measurable here: a retry: 900 ms late)",
      "7 cases: 2 passed, 2 failed, 1 not applicable, 1 not measurable here (3 measured again), 1 not run"
    ].join("\n")
  )
})
