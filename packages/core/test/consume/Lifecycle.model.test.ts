/** The traces of the Alloy model, replayed on `Lifecycle.step`: it decides in each step what the model does. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"

interface Trace {
  readonly name: string
  readonly steps: ReadonlyArray<readonly [act: string, ...does: ReadonlyArray<string>]>
}

const file = new URL("../../../../tools/model/test/traces.jsonl", import.meta.url)
const traces = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line): Trace => JSON.parse(line))

const later = 600_000
const letter = Settlement.DeadLetter("undecodable", "q.dlq", { name: "Error", message: "no" })
const verdicts: Record<string, Settlement.Settlement> = {
  Ack: Settlement.Ack,
  Drop: Settlement.Drop("dropped", { name: "Error", message: "no" }),
  Again: Settlement.Retry(0),
  Later: Settlement.Retry(later),
  Bury: letter
}
const answers: Record<string, Lifecycle.Event> = {
  Ok: { _tag: "Taken" },
  Gone: { _tag: "Failed", fate: "lost" },
  Ours: { _tag: "Failed", fate: "transient" },
  Unknown: { _tag: "Failed", fate: "unknown" },
  Refuse: { _tag: "Failed", fate: "rejected" },
  RefuseAll: { _tag: "Failed", fate: "rejected", smaller: false }
}

const describeSettlement = (settlement: Settlement.Settlement): string => {
  const isLater = "delay" in settlement && settlement.delay > 0 ? " later" : ""
  const cut = "cut" in settlement && settlement.cut !== undefined ? ` without ${settlement.cut}` : ""
  return `${settlement._tag}${isLater}${cut}`
}

/** Returns the steps until `step` differed from the trace; `undefined` if it never did. */
const replay = ({ steps }: Trace): string | undefined => {
  const lives = new Map<string, Lifecycle.Life>()
  const memories = new Map<string, Lifecycle.Memory>()
  const deliveries = new Map<string, number>()
  let did: Array<string> = []
  let now = 0

  const happen = (name: string, event: Lifecycle.Event): void => {
    const context = { now, isStopping: false, isBound: true, countsReleases: false, copiesRetries: false }
    const { effects, life } = Lifecycle.step(lives.get(name)!, event, context)
    lives.set(name, life)
    for (const effect of effects) {
      if (effect._tag === "Remember") memories.set(name, effect.memory)
      if (effect._tag === "Repeat") begin(name, effect.life)
    }
    if (life.state._tag === "Over" && lives.get(name) === life) lives.delete(name)
    if (life.state._tag !== "Decided") return
    did.push(`${name} ${describeSettlement(life.state.decision.settlement)}`)
    happen(name, { _tag: "Sent" })
  }

  const begin = (name: string, life: Lifecycle.Life): void => {
    lives.set(name, life)
    if (life.history.prior !== undefined) happen(name, { _tag: "Repeated" })
  }

  const deliver = (name: string, isEarly: boolean): void => {
    const attempts = (deliveries.get(name) ?? 0) + 1
    deliveries.set(name, attempts)
    const arrived = delivery(name, { attempts })
    if (lives.has(name)) return happen(name, { _tag: "Redelivered", delivery: arrived })
    const memory = memories.get(name)
    memories.delete(name)
    const recalled = memory && Lifecycle.recall(memory, arrived)
    begin(name, { history: Lifecycle.ordinary, delivery: arrived, ...recalled, state: Lifecycle.waiting })
    const isWaiting = lives.get(name)?.state._tag === "Waiting"
    if (isEarly && isWaiting) happen(name, { _tag: "Concluded", settlement: Settlement.Release(later) })
  }

  const cut = (): void => {
    for (const [name, { history }] of lives) {
      if (typeof history.redelivery === "object") happen(name, { _tag: "RedeliveryLost" })
      if (lives.has(name)) happen(name, { _tag: "Lost" })
    }
  }

  const past: Array<string> = []
  for (const [act, ...does] of steps) {
    past.push([act, ...does].join("; "))
    did = []
    const [kind = "", name = "", more = ""] = act.split(" ")
    const state = lives.get(name)?.state
    if (kind === "Deliver") deliver(name, more === "early")
    else if (kind === "Cut") cut()
    else if (kind === "End") happen(name, { _tag: "Concluded", settlement: verdicts[more]! })
    else if (kind === "Retry") {
      now += state?._tag === "Kept" ? state.decision.kept!.pause : 0
      happen(name, { _tag: "Resumed" })
    } else if (answers[kind] !== undefined) happen(name, answers[kind])
    // The broker does not count a released message.
    else if (kind === "Settle" && state !== undefined && Lifecycle.decisionOf(state)?.settlement._tag === "Release")
      deliveries.set(name, deliveries.get(name)! - 1)
    for (const each of does.filter((one) => one.includes(" runs"))) happen(each.split(" ")[0]!, { _tag: "Started" })
    const decided = does.filter((one) => !one.includes(" runs"))
    if (did.toSorted().join() !== decided.toSorted().join())
      return `${past.join("\n")}\nstep: ${did.join("; ") || "nothing"}`
  }
  return undefined
}

describe("step does what the model does in", () => {
  it.each(traces.map((trace) => [trace.name, trace] as const))("%s", (_, trace) => assert.isUndefined(replay(trace)))
})
