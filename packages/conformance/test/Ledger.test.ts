import { assert, it } from "@effect/vitest"
import * as Ledger from "../src/Ledger.ts"

const ledger: Ledger.Ledger = {
  name: "acme 1.0",
  cases: 11,
  lines: [
    { group: "one", name: "a", outcome: { _tag: "Passed" }, measured: 1 },
    { group: "two", name: "b", outcome: { _tag: "Failed", error: new Error("expected 1\nwith details") }, measured: 2 },
    { group: "one", name: "c", outcome: { _tag: "NotApplicable", missing: "ordered" }, measured: 1 },
    { group: "two", name: "d", outcome: { _tag: "Failed", error: "text" }, measured: 1 },
    { group: "two", name: "e", outcome: { _tag: "Passed" }, measured: 3 },
    { group: "two", name: "f", outcome: { _tag: "NotMeasurable", reason: "a retry: 900 ms late" }, measured: 5 },
    ...["failNext(publish, refused)", "restart", "failNext(settle, lostAnswer)"].map((missing, index) => ({
      group: "two",
      name: `guarantee ${index}`,
      outcome: { _tag: "NotApplicable" as const, missing: `harness.${missing}` },
      measured: 1
    })),
    { group: "two", name: "g", outcome: { _tag: "NotApplicable", missing: "absence of harness.another" }, measured: 1 }
  ]
}

it("renders a line per case by group, and totals that leave nothing out", () => {
  assert.strictEqual(
    Ledger.render(ledger),
    [
      "conformance of acme 1.0",
      "  one",
      "    pass  a",
      "    n/a   c (missing: ordered)",
      "  two",
      "    FAIL  b (measured 2 times; expected 1)",
      "    FAIL  d (text)",
      "    pass  e (measured 3 times)",
      "    ????  f (measured 5 times; not measurable here: a retry: 900 ms late)",
      "    n/a   guarantee 0 (missing: harness.failNext(publish, refused))",
      "    n/a   guarantee 1 (missing: harness.restart)",
      "    n/a   guarantee 2 (missing: harness.failNext(settle, lostAnswer))",
      "    n/a   g (missing: absence of harness.another)",
      "not tested, because the harness has no failNext:",
      "  guarantee 0",
      "  guarantee 2",
      "not tested, because the harness has no restart:",
      "  guarantee 1",
      "11 cases: 2 passed, 2 failed, 5 not applicable, 1 not measurable here (3 measured again), 1 not run"
    ].join("\n")
  )
})
