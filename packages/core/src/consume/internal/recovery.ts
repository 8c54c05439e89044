/**
 * Settlements that the broker did not take. What is the broker's trouble pauses the consumer until one of them goes
 * through; what is one message's own is tried with smaller copies, then without a copy, then now and again: the message is
 * in quarantine, and no handler runs for it.
 */
import { truncations } from "../../message/Metadata.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { SettleFailure } from "../../port/Broker.ts"
import type { Decider } from "./decide.ts"
import type { Flow } from "./flow.ts"
import type { Item, InFlightCounters } from "./item.ts"
import type { Redeliveries } from "./redeliveries.ts"
import * as Remembered from "./remembered.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"

export interface Recovery {
  readonly onFailed: (item: Item, failure: SettleFailure) => void
  /** Must be called when a settlement has been taken while some are kept. */
  readonly onSettled: (item: Item) => void
  /** Settles an item as it was decided before, when that may be tried again. */
  readonly settleLater: (item: Item) => void
  /** Forgets an item whose settlement waits, because its delivery is lost. */
  readonly forget: (item: Item) => void
  /** Settles again what waits for the broker, as far as it allows. */
  readonly resume: () => void
  /** Settles once more what waits for the broker, and gives up what is in quarantine: closing gives that back. */
  readonly stop: () => void
}

export interface Dependencies extends Pick<Runtime, "timers"> {
  readonly decider: Pick<Decider, "refund">
  readonly flow: Pick<Flow, "handler" | "broker" | "update">
  readonly load: InFlightCounters
  readonly reporter: Pick<Reporter, "settleFailed" | "quarantined">
  readonly redeliveries: Pick<Redeliveries, "adopt" | "lose">
  readonly settleAgain: (item: Item, settlement: Settlement.Settlement) => void
}

/** Milliseconds until a refused settlement is tried again: each time twice as long, up to the longest. */
const pauses = { first: 1000, longest: 60_000 }

/**
 * Milliseconds from the last time that a settlement was lost until it may be tried again: none after the first, since most
 * are lost once. They are the message's own: what its deliveries do meanwhile makes them no longer.
 */
const pauseAfter = (losses: number): number =>
  losses < 2 ? 0 : Math.min(pauses.first * 2 ** (losses - 2), pauses.longest)

/** A message that this process keeps. */
interface Kept {
  /** The settlement to try next. */
  readonly wanted: Settlement.Settlement
  /** Milliseconds until then, counted from its refusal. */
  readonly pause: number
  readonly isQuarantined: boolean
}

export const make = (dependencies: Dependencies): Recovery => {
  const { decider, flow, load, redeliveries, reporter, settleAgain, timers } = dependencies
  /** Items whose settlement waits for the broker, the next probe first. */
  let held: Array<Item> = []
  const keeping = keeper(dependencies)

  const forget = (item: Item): void => {
    held = held.filter((each) => each !== item)
    load.held = held.length
    keeping.end(item)
  }

  const giveUp = (item: Item): void => {
    forget(item)
    redeliveries.lose(item)
  }

  const settleHeld = (count: number): void => {
    const items = held.splice(0, count)
    load.held = held.length
    for (const item of items) settleAgain(item, item.settlement!)
  }

  const resume = (): void => {
    const { allowance } = flow.broker
    if (allowance !== "none" && held.length > 0) settleHeld(allowance === "one" ? 1 : held.length)
  }

  return {
    onFailed: (item, failure) => {
      const { error, fate } = failure
      const settlement = item.settlement!
      if (!keeping.isQuarantined(item) && cutOf(settlement) === undefined) {
        reporter.settleFailed({ delivery: item.delivery, settlement: settlement._tag, error })
      }
      if (error.reason === "LeaseLost") flow.handler.signal({ _tag: "Failed", id: item.key })
      flow.broker.signal({ _tag: signals[fate], id: item.key })
      // It is spent again when it is sent again.
      decider.refund(settlement)
      // A later delivery of the message is handled on its own, so that this one need not be settled.
      if (fate === "lost" || item.isSuperseded) {
        // What should go back at once does.
        const isBack = settlement._tag === "Release" && settlement.delay === 0
        if (!isBack) item.tryAt = timers.now() + pauseAfter(++item.losses)
        return giveUp(item)
      }
      if (fate === "rejected") {
        redeliveries.adopt(item)
        return load.isStopping ? giveUp(item) : keeping.refuse(item, failure, settlement)
      }
      // A delivery that came meanwhile is settled in its place.
      if (load.isStopping) return giveUp(item)
      redeliveries.adopt(item)
      item.stage = "kept"
      held.push(item)
      load.held = held.length
      // It was sent before the pause ended, so that no probe is under way whose end would settle it again.
      if (flow.broker.mayStart()) resume()
    },
    onSettled: keeping.end,
    settleLater: keeping.settleLater,
    forget,
    resume,
    stop: () => {
      settleHeld(held.length)
      for (const item of keeping.items()) if (item.stage === "kept") giveUp(item)
    }
  }
}

/** A refusal is an answer. A delivery that is gone does not tell whether the broker takes settlements. */
const signals = { lost: "Uncounted", rejected: "Succeeded", transient: "Failed", unknown: "Failed" } as const

/** The messages whose settlement, or its copy, is refused. */
const keeper = ({ flow, load, reporter, settleAgain, timers }: Dependencies) => {
  const kept = new Map<Item, Kept>()

  const keep = (item: Item, how: Kept): void => {
    kept.set(item, how)
    load.kept = kept.size
    item.stage = "kept"
    timers.after(how.pause, () => {
      // It may have been lost meanwhile, and then it is kept no more.
      if (kept.get(item) === how) settleAgain(item, Remembered.remaining(how.wanted, item.due - timers.now()))
    })
    flow.update()
  }

  const quarantine = (item: Item, { error }: SettleFailure, settlement: Settlement.Settlement): void => {
    const before = kept.get(item)
    if (before?.isQuarantined === true) {
      item.settlement = before.wanted
      return keep(item, { ...before, pause: Math.min(2 * before.pause, pauses.longest) })
    }
    const wanted = whole(settlement)
    item.settlement = wanted
    load.quarantined++
    reporter.quarantined(item.delivery, wanted, error)
    keep(item, { wanted, pause: pauses.first, isQuarantined: true })
  }

  return {
    isQuarantined: (item: Item) => kept.get(item)?.isQuarantined === true,
    items: () => [...kept.keys()],
    end: (item: Item): void => {
      if (kept.get(item)?.isQuarantined === true) load.quarantined--
      kept.delete(item)
      load.kept = kept.size
    },
    settleLater: (item: Item): void =>
      keep(item, { wanted: item.priorSettlement!, pause: item.tryAt - timers.now(), isQuarantined: false }),
    refuse: (item: Item, failure: SettleFailure, settlement: Settlement.Settlement): void => {
      const smaller = failure.smaller === false ? undefined : cutMore(settlement)
      if (smaller !== undefined) return settleAgain(item, smaller)
      // Without a copy, this process keeps the delay.
      const native = withoutCopy(settlement)
      if (native === undefined) quarantine(item, failure, settlement)
      else keep(item, native)
    }
  }
}

const cutOf = (settlement: Settlement.Settlement) => ("cut" in settlement ? settlement.cut : undefined)

/** The settlement with the whole copy. */
const whole = (settlement: Settlement.Settlement): Settlement.Settlement =>
  "cut" in settlement ? { ...settlement, cut: undefined } : settlement

/** The settlement with a smaller copy; `undefined` when it makes none, or none that is smaller. */
const cutMore = (settlement: Settlement.Settlement): Settlement.Settlement | undefined => {
  const { _tag } = settlement
  if (_tag === "Ack" || _tag === "Drop" || (_tag === "Release" && settlement.delay === 0)) return undefined
  const cut = truncations[settlement.cut === undefined ? 0 : truncations.indexOf(settlement.cut) + 1]
  return cut === undefined ? undefined : { ...settlement, cut }
}

/** How a message with a delay goes back without a copy; `undefined` for all else. */
const withoutCopy = (settlement: Settlement.Settlement): Kept | undefined => {
  if (settlement._tag === "Retry" && settlement.delay > 0) {
    return { pause: settlement.delay, wanted: Settlement.Retry(0, settlement.error), isQuarantined: false }
  }
  if (settlement._tag === "Release" && settlement.delay > 0) {
    return { pause: settlement.delay, wanted: Settlement.Release(), isQuarantined: false }
  }
  return undefined
}
