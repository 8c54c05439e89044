import { assert, it } from "@effect/vitest"
import * as Ledger from "../src/Ledger.ts"

const ledger: Ledger.Ledger = {
  name: "acme 1.0",
  cases: 5,
  lines: [
    { group: "one", name: "a", outcome: { _tag: "Passed" } },
    { group: "two", name: "b", outcome: { _tag: "Failed", error: new Error("expected 1\nwith details") } },
    { group: "one", name: "c", outcome: { _tag: "NotApplicable", missing: "peek" } },
    { group: "two", name: "d", outcome: { _tag: "Failed", error: "text" } }
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
      "    FAIL  b (expected 1)",
      "    FAIL  d (text)",
      "5 cases: 1 passed, 2 failed, 1 not applicable, 1 not run"
    ].join("\n")
  )
})
