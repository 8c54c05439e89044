/** Lives of deliveries: every state and event, all short sequences, and the model's traces, on the function itself. */
import { assert, describe, it } from "@effect/vitest"
import type { Delivery } from "../../src/message/Delivery.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import { delivery } from "../items.ts"
import * as Sequences from "./lifecycleSequences.ts"

const context: Lifecycle.Context = {
  now: 1000,
  isStopping: false,
  isBound: true,
  countsReleases: false,
  copiesRetries: false
}

const decision = (settlement: Settlement.Settlement, more: Partial<Lifecycle.Decision> = {}): Lifecycle.Decision => ({
  settlement,
  due: 0,
  losses: 0,
  tryAt: 0,
  isBegun: true,
  isDone: false,
  kept: undefined,
  ...more
})

const retry = Settlement.Retry(500)
const letter = Settlement.DeadLetter("undecodable", "q.dlq", { name: "Error", message: "no" })

const life = (state: Lifecycle.State, history: Partial<Lifecycle.History> = {}, of: Delivery = delivery("a")) => ({
  delivery: of,
  state,
  history: { ...Lifecycle.ordinary, ...history }
})
const settling = (settlement: Settlement.Settlement, history: Partial<Lifecycle.History> = {}) =>
  life({ _tag: "Settling", decision: decision(settlement) }, history)
const failed = (fate: "lost" | "transient" | "unknown" | "rejected", smaller?: boolean): Lifecycle.Event => ({
  _tag: "Failed",
  fate,
  smaller
})
const rejected = failed("rejected")
const again = (attempts: number): Lifecycle.Event => ({ _tag: "Redelivered", delivery: delivery("a", { attempts }) })

const stateOf = ({ life: { state } }: Lifecycle.Step) => state._tag
const settlementOf = ({ life: { state } }: Lifecycle.Step) => Lifecycle.decisionOf(state)?.settlement
const keptOf = ({ life: { state } }: Lifecycle.Step) => Lifecycle.decisionOf(state)?.kept
const step = (from: Lifecycle.Life, event: Lifecycle.Event, more: Partial<Lifecycle.Context> = {}) =>
  Lifecycle.step(from, event, { ...context, ...more })
const memoryOf = ({ effects }: Lifecycle.Step) => effects.find((effect) => effect._tag === "Remember")?.memory
const repeatOf = ({ effects }: Lifecycle.Step) => effects.find((effect) => effect._tag === "Repeat")?.life

describe("every event in every state", () => {
  const events = Object.keys(Lifecycle.states) as Array<Lifecycle.Event["_tag"]>
  const full: Record<Lifecycle.Event["_tag"], Lifecycle.Event> = {
    DecodingStarted: { _tag: "DecodingStarted" },
    DecodingEnded: { _tag: "DecodingEnded" },
    Started: { _tag: "Started" },
    Enlisted: { _tag: "Enlisted" },
    Refused: { _tag: "Refused" },
    Concluded: { _tag: "Concluded", settlement: Settlement.Ack },
    Repeated: { _tag: "Repeated" },
    Denied: { _tag: "Denied" },
    Sent: { _tag: "Sent" },
    Taken: { _tag: "Taken" },
    Failed: failed("transient"),
    Resumed: { _tag: "Resumed" },
    Lost: { _tag: "Lost" },
    Redelivered: again(2),
    RedeliveryLost: { _tag: "RedeliveryLost" },
    Stopped: { _tag: "Stopped" }
  }
  const states: ReadonlyArray<Lifecycle.State> = [
    ...(["Waiting", "Decoding", "Running", "Over"] as const).map((_tag) => ({ _tag })),
    ...(["Decided", "Settling", "Held", "Kept"] as const).map((_tag) => ({ _tag, decision: decision(Settlement.Ack) }))
  ]
  const rows = states.flatMap((state) => events.map((event) => [state._tag, event, state] as const))

  it.each(rows)("%s, %s: is a transition, or named as impossible", (tag, event, state) => {
    const from = life(state, { prior: decision(Settlement.Ack) })
    if (Lifecycle.states[event].includes(tag)) assert.isDefined(step(from, full[event]).life)
    else assert.throws(() => step(from, full[event]), `Lifecycle.step: ${event} cannot happen while ${tag}`)
  })

  it("changes no life in place", () => {
    for (const [, event, state] of rows) {
      const from = Object.freeze(life(Object.freeze(state), { prior: decision(Settlement.Ack) }))
      if (Lifecycle.states[event].includes(state._tag)) step(from, full[event])
    }
  })
})

describe("the path without allocations", () => {
  const lives = [
    life(Lifecycle.waiting),
    life({ _tag: "Running" }),
    settling(Settlement.Ack),
    settling(retry),
    settling(Settlement.Ack, { redelivery: "lost" }),
    settling(Settlement.Ack, { redelivery: "separate" }),
    settling(Settlement.Ack, { redelivery: delivery("a") }),
    life({ _tag: "Decided", decision: decision(retry) }),
    life({ _tag: "Running" }, { prior: decision(Settlement.Ack) }),
    life({ _tag: "Running" }, { transaction: "enlisted" }),
    life({
      _tag: "Settling",
      decision: decision(Settlement.Ack, { kept: { settlement: retry, pause: 1, isQuarantined: true } })
    })
  ]
  const quick = [
    ["started", { _tag: "Started" }],
    ["acked", { _tag: "Concluded", settlement: Settlement.Ack }],
    ["taken", { _tag: "Taken" }]
  ] as const

  it("is the one of step, wherever it applies, and has no effects", () => {
    let applied = 0
    for (const from of lives)
      for (const [name, event] of quick) {
        const state = Lifecycle.states[event._tag].includes(from.state._tag) ? Lifecycle.quick[name](from) : undefined
        if (state === undefined) continue
        applied++
        assert.deepStrictEqual(step(from, event), { life: { ...from, state }, effects: [] })
      }
    assert.strictEqual(applied, 5)
  })

  it("sends as step does", () => {
    for (const settlement of [Settlement.Ack, retry]) {
      const decided = step(life({ _tag: "Running" }), { _tag: "Concluded", settlement }).life
      assert.deepStrictEqual(step(decided, { _tag: "Sent" }).life.state, Lifecycle.quick.sent(decided.state))
    }
  })
})

describe("a rejected settlement", () => {
  it("is tried with smaller copies, then in quarantine with the whole copy, at pauses that double up to a minute", () => {
    let now = settling(letter) as Lifecycle.Life
    const cuts: Array<unknown> = []
    let last = step(now, rejected)
    while (stateOf(last) === "Decided") {
      cuts.push((settlementOf(last) as { cut?: string }).cut)
      now = step(last.life, { _tag: "Sent" }).life
      last = step(now, rejected)
    }
    assert.deepStrictEqual(cuts, ["history", "error-text", "error", "all"])
    assert.deepStrictEqual(keptOf(last), {
      settlement: { ...letter, cut: undefined } as Settlement.Settlement,
      pause: 1000,
      isQuarantined: true
    })
    const pauses: Array<number | undefined> = []
    for (let n = 0; n < 8; n++) {
      const sent = step(step(last.life, { _tag: "Resumed" }).life, { _tag: "Sent" }).life
      last = step(sent, failed("rejected", false))
      pauses.push(keptOf(last)?.pause)
    }
    assert.deepStrictEqual(pauses, [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  it("of a delayed message waits for its delay here, and then needs no copy", () => {
    for (const [settlement, native] of [
      [retry, Settlement.Retry(0, undefined)],
      [Settlement.Release(500), Settlement.Release()]
    ] as const) {
      const kept = step(settling(settlement), failed("rejected", false))
      assert.deepStrictEqual(keptOf(kept), { settlement: native, pause: 500, isQuarantined: false })
      assert.deepStrictEqual(settlementOf(step(kept.life, { _tag: "Resumed" }))?._tag, native._tag)
    }
  })

  it("is returned when the consumer stops", () => {
    const step1 = step(settling(letter), rejected, { isStopping: true })
    assert.deepStrictEqual([stateOf(step1), memoryOf(step1)?.decision?.settlement], ["Over", letter])
  })
})

describe("a lost delivery", () => {
  it("that no handler has begun costs no attempt; those in between, of other consumers, do", () => {
    for (const [before, then, attempts] of [
      [1, 2, 1],
      [1, 1, 1],
      [1, 5, 4],
      [3, 4, 3]
    ] as const) {
      const memory = memoryOf(step(life(Lifecycle.waiting, {}, delivery("a", { attempts: before })), { _tag: "Lost" }))!
      const recalled = Lifecycle.recall(memory, delivery("a", { attempts: then }))
      assert.deepStrictEqual([recalled.delivery.attempts, recalled.history.prior], [attempts, undefined])
    }
  })

  it("keeps the facts of the broker on its redelivery, also by a getter of its class", () => {
    class Told {
      constructor() {
        Object.assign(this, delivery("a", { attempts: 5 }))
      }
      get native() {
        return { memory: {} }
      }
    }
    const memory = memoryOf(step(life(Lifecycle.waiting), { _tag: "Lost" }))!
    assert.deepStrictEqual(Lifecycle.recall(memory, new Told() as never).delivery.native, { memory: {} })
  })

  it("has its decision repeated, with the rest of a retry's delay in whole milliseconds, and later after each further loss", () => {
    let from: Lifecycle.Life = settling(retry)
    from = { ...from, state: { _tag: "Settling", decision: decision(retry, { due: 1500 }) } }
    const pauses: Array<number> = []
    for (let losses = 1; losses <= 9; losses++) {
      const memory = memoryOf(step(from, failed("lost")))!
      const { delivery: next, history } = Lifecycle.recall(memory, delivery("a", { attempts: losses + 1 }))
      pauses.push(history.prior!.tryAt - context.now)
      const repeated = step(
        { delivery: next, state: Lifecycle.waiting, history },
        { _tag: "Repeated" },
        { now: 1400.5 }
      )
      if (losses === 1) assert.deepStrictEqual(settlementOf(repeated), Settlement.Retry(100, undefined))
      else assert.strictEqual(stateOf(repeated), pauses.at(-1)! > 400 ? "Kept" : "Decided")
      from = { delivery: next, state: { _tag: "Settling", decision: history.prior! }, history }
    }
    assert.deepStrictEqual(pauses, [0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
  })

  it("that is released remembers what an earlier delivery decided: a release decides nothing", () => {
    assert.isUndefined(memoryOf(step(settling(Settlement.Release()), failed("lost")))!.decision)
    const prior = decision(Settlement.Ack, { losses: 1, due: 5, tryAt: 7 })
    assert.deepStrictEqual(memoryOf(step(settling(Settlement.Release(), { prior }), failed("lost")))!.decision, prior)
  })

  it("whose handler runs ends with the handler, and is replaced by its redelivery", () => {
    const lost = step(life({ _tag: "Running" }), { _tag: "Lost" })
    assert.deepStrictEqual([stateOf(lost), lost.life.history.isLost], ["Running", true])
    const replaced = step(lost.life, again(2))
    assert.deepStrictEqual(
      [
        replaced.life.history.isLost,
        replaced.life.delivery.attempts,
        replaced.life.history.uncounted,
        replaced.effects
      ],
      [false, 1, 1, []]
    )
  })
})

describe("a message that its handler has acked in a transaction", () => {
  const enlisted = (state: Lifecycle.State, history: Partial<Lifecycle.History> = {}) =>
    life(state, { transaction: "enlisted", ...history })

  it("is never acked", () => {
    const running = step(life({ _tag: "Running" }), { _tag: "Enlisted" }).life
    assert.throws(
      () => step(running, { _tag: "Concluded", settlement: Settlement.Ack }),
      "Lifecycle.step: Ack cannot settle a message that its handler has acked in a transaction"
    )
    assert.isUndefined(Lifecycle.quick.acked(running))
  })

  it("is done when the settlement is lost, whatever it was, and nothing is remembered", () => {
    for (const settlement of [Settlement.Retry(0), retry, letter, Settlement.Release()]) {
      const settling = enlisted({ _tag: "Settling", decision: decision(settlement) })
      const done = step(settling, failed("lost"))
      assert.deepStrictEqual([stateOf(done), done.effects], ["Over", [{ _tag: "Committed" }]])
    }
  })

  it("is not done when its delivery was lost before, was redelivered, or was refused by the adapter", () => {
    const state = { _tag: "Settling", decision: decision(retry) } as const
    const histories: ReadonlyArray<Partial<Lifecycle.History>> = [
      { isLost: true },
      { redelivery: delivery("a", { attempts: 2 }) },
      { redelivery: "lost" },
      { transaction: "refused" }
    ]
    for (const history of histories) {
      const lost = step(enlisted(state, history), failed("lost"))
      assert.deepStrictEqual(
        [memoryOf(lost)?.decision?.settlement ?? repeatOf(lost)?.history.prior?.settlement, lost.effects.length],
        [retry, 1]
      )
    }
  })

  it("goes on as after a failure when the broker answers otherwise", () => {
    const settling = enlisted({ _tag: "Settling", decision: decision(retry) })
    assert.strictEqual(stateOf(step(settling, { _tag: "Taken" })), "Over")
    assert.strictEqual(stateOf(step(settling, failed("unknown"))), "Held")
    assert.strictEqual(stateOf(step(settling, rejected)), "Decided")
  })
})

describe("a redelivery", () => {
  it("that was sent before the delivery in flight is ignored, unless the count may have restarted", () => {
    const running = life({ _tag: "Running" }, {}, delivery("a", { attempts: 3 }))
    assert.deepStrictEqual(step(running, again(2)).life, running)
    const lost = step(running, { _tag: "Lost" }).life
    assert.isFalse(step(lost, again(1)).life.history.isLost)
    assert.isTrue(step(lost, again(1), { isBound: false }).life.history.isLost)
  })

  it("of a waiting message that others had in between is another delivery", () => {
    const { effects, life: ended } = step(life(Lifecycle.waiting), again(3))
    assert.deepStrictEqual([ended.state, effects.map(({ _tag }) => _tag)], [Lifecycle.over, ["Remember", "Separate"]])
  })

  it("during a settlement waits for the answer; after a success it only ends the duplicate", () => {
    const pending = step(settling(letter), again(2)).life
    const taken = step(pending, { _tag: "Taken" })
    assert.deepStrictEqual(
      [stateOf(taken), repeatOf(taken)?.history.prior?.settlement, repeatOf(taken)?.history.prior?.isDone],
      ["Over", Settlement.Ack, true]
    )
    const lost = step(pending, failed("lost"))
    assert.deepStrictEqual(
      [repeatOf(lost)?.history.prior?.settlement, repeatOf(lost)?.history.prior?.isDone],
      [letter, false]
    )
    assert.strictEqual(step(pending, failed("transient")).life.delivery.attempts, 1)
  })

  it("of a message that goes back is the returned one, unless it is early, lost or copied", () => {
    const rows: ReadonlyArray<readonly [Lifecycle.Life, Partial<Lifecycle.Context>, boolean]> = [
      [settling(Settlement.Retry(0)), {}, true],
      [settling(Settlement.Release()), {}, true],
      [settling(Settlement.Ack), {}, false],
      [settling(Settlement.Retry(0)), { copiesRetries: true }, false],
      [settling(Settlement.Retry(0), { isLost: true }), {}, false],
      [life({ _tag: "Settling", decision: decision(retry, { due: 1001 }) }), {}, false],
      [life({ _tag: "Settling", decision: decision(retry, { due: 1000 }) }), {}, true]
    ]
    for (const [from, more, isSeparate] of rows) {
      const { effects, life: next } = step(from, again(2), more)
      assert.deepStrictEqual(
        [effects.some(({ _tag }) => _tag === "Separate"), next.history.redelivery === "separate"],
        [isSeparate, isSeparate]
      )
    }
  })

  it("that is lost too leaves the decision for the next one", () => {
    const pending = step(settling(letter), again(4)).life
    const lost = step(pending, { _tag: "RedeliveryLost" }).life
    assert.deepStrictEqual([lost.history.redelivery, lost.history.uncounted], ["lost", 3])
    const { decision } = memoryOf(step(lost, { _tag: "Taken" }))!
    const expected = { settlement: Settlement.Ack, isDone: true }
    assert.deepInclude(decision, expected)
    const repeated = step(life(Lifecycle.waiting, { prior: decision }), { _tag: "Repeated" }).life
    const sent = step(repeated, { _tag: "Sent" }).life
    assert.deepInclude(memoryOf(step(sent, failed("lost")))?.decision, expected)
    const pendingAgain = step(sent, again(5)).life
    assert.deepInclude(repeatOf(step(pendingAgain, failed("lost")))?.history.prior, expected)
  })
})

describe("a returned message", () => {
  it("for which the broker counts too many attempts has its own remembered", () => {
    const begun = life({ _tag: "Running" }, { uncounted: 2 }, delivery("a", { attempts: 1 }))
    const memory = memoryOf(step(begun, { _tag: "Concluded", settlement: Settlement.Retry(0) }))!
    assert.deepInclude(memory, { attempts: 1, brokerAttempts: 2, decision: undefined, isLost: false })
    assert.strictEqual(Lifecycle.recall(memory, delivery("a", { attempts: 4 })).delivery.attempts, 2)
    assert.isUndefined(
      memoryOf(step(life({ _tag: "Running" }), { _tag: "Concluded", settlement: Settlement.Retry(0) }))
    )
  })

  it("without a run is no attempt, although the broker counts it", () => {
    const unrun = (state: Lifecycle.State) =>
      memoryOf(step(life(state), { _tag: "Concluded", settlement: Settlement.Release() }, { countsReleases: true }))
    assert.strictEqual(Lifecycle.recall(unrun(Lifecycle.waiting)!, delivery("a", { attempts: 2 })).delivery.attempts, 1)
    assert.isUndefined(unrun({ _tag: "Running" }))
  })

  it("instead of a dead letter that the budget denies is released, and known to be begun", () => {
    const decided = step(life({ _tag: "Running" }), { _tag: "Concluded", settlement: letter }).life
    assert.deepStrictEqual(settlementOf(step(decided, { _tag: "Denied" })), {
      ...Settlement.Release(),
      isBegun: true
    } as Settlement.Settlement)
  })
})

describe("all sequences of events up to length 7", () => {
  it("settle a delivery at most once, after its copy only, lose nothing, and keep the first decision", () => {
    const { sequences, violations } = Sequences.explore(7)
    assert.deepStrictEqual(violations, [])
    assert.isAbove(sequences, 50_000)
  })
})
