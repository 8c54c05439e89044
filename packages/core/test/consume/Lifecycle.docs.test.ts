/** The table of lives in ARCHITECTURE.md is that of `step`. `REQUEUE_RECORD=1` writes it. */
import { assert, it } from "@effect/vitest"
import { readFileSync, writeFileSync } from "node:fs"
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import * as Sequences from "./lifecycleSequences.ts"

const file = new URL("../../../../ARCHITECTURE.md", import.meta.url)
const columns = ["Waiting", "Decoding", "Running", "Decided", "Settling", "Held", "Kept"] as const

const outcomeOf = (from: Lifecycle.State, { effects, life }: Lifecycle.Step): string => {
  const { redelivery, isLost } = life.history
  const marks = [
    ...effects.map(({ _tag }) => _tag.toLowerCase()),
    ...(life.state === from && isLost ? ["lost"] : []),
    ...(life.state === from && typeof redelivery === "object" ? ["pending"] : []),
    ...(life.state === from && redelivery === "lost" ? ["pending lost"] : [])
  ]
  const next = life.state._tag === from._tag ? "same" : life.state._tag
  return marks.length === 0 ? next : `${next} (${[...new Set(marks)].join(", ")})`
}

const table = (): ReadonlyArray<string> => {
  const cells = new Map<string, Set<string>>()
  Sequences.explore(7, ({ event, from, step }) => {
    const key = `${event._tag} ${from._tag}`
    const known = cells.get(key) ?? new Set()
    cells.set(key, known.add(outcomeOf(from, step)))
  })
  const row = (name: string, values: ReadonlyArray<string>) => `| ${[name, ...values].join(" | ")} |`
  return [
    row("event", columns),
    row(
      "---",
      columns.map(() => "---")
    ),
    ...Object.keys(Lifecycle.states).map((event) =>
      row(
        event,
        columns.map((state) => [...(cells.get(`${event} ${state}`) ?? [])].toSorted().join("; "))
      )
    )
  ]
}

it("the table of lives in ARCHITECTURE.md has the transitions of step", () => {
  const text = readFileSync(file, "utf8")
  const [before = "", , after = ""] = text.split(/(?<=## A delivery's life\n[^|]*)((?:\|.*\n)+)/)
  const expected = `${before}${table().join("\n")}\n${after}`
  if (process.env["REQUEUE_RECORD"] === "1") writeFileSync(file, expected)
  else assert.strictEqual(text, expected)
})
