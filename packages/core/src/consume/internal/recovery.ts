/**
 * Failed settlements. A failure that affects all messages pauses the consumer until one settlement succeeds. If the broker
 * rejects only this settlement, it is retried with smaller copies, then without a copy. If every way is rejected, the
 * message is quarantined: no handler runs for it, and its settlement is retried at growing intervals.
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
  /** Must be called when a settlement succeeds while messages are kept. */
  readonly onSettled: (item: Item) => void
  /** Repeats the prior settlement of an item once it may be retried. */
  readonly settleLater: (item: Item) => void
  /** Removes an item whose settlement waits, because its delivery is lost. */
  readonly forget: (item: Item) => void
  /** Retries the held settlements: all of them, or one if the broker is probed. */
  readonly resume: () => void
  /** Retries the held settlements once, and drops quarantined messages: closing the subscription returns them. */
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

/** The pause before a rejected settlement is retried, in milliseconds: it doubles each time, up to the longest. */
const pauses = { first: 1000, longest: 60_000 }

/** Returns the pause before a lost settlement may be retried, in milliseconds: none after the first loss. */
const pauseAfter = (losses: number): number =>
  losses < 2 ? 0 : Math.min(pauses.first * 2 ** (losses - 2), pauses.longest)

/** A message that this process keeps. */
interface Kept {
  /** The settlement to try next. */
  readonly wanted: Settlement.Settlement
  /** Milliseconds from the rejection to the next try. */
  readonly pause: number
  readonly isQuarantined: boolean
}

export const make = (dependencies: Dependencies): Recovery => {
  const { decider, flow, load, redeliveries, reporter, settleAgain, timers } = dependencies
  /** Items whose settlement waits until the broker accepts settlements again, the next probe first. */
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
      // Sending it again spends the budget again.
      decider.refund(settlement)
      // A superseded item need not be settled: a later delivery of the message is handled separately.
      if (fate === "lost" || item.isSuperseded) {
        // A lost delivery is in the queue again, which is all that an undelayed release asks for.
        const isBack = settlement._tag === "Release" && settlement.delay === 0
        if (!isBack) item.tryAt = timers.now() + pauseAfter(++item.losses)
        return giveUp(item)
      }
      if (fate === "rejected") {
        redeliveries.adopt(item)
        return load.isStopping ? giveUp(item) : keeping.refuse(item, failure, settlement)
      }
      // A pending redelivery, if any, is settled instead.
      if (load.isStopping) return giveUp(item)
      redeliveries.adopt(item)
      item.stage = "kept"
      held.push(item)
      load.held = held.length
      // It was sent before the pause ended. Without a probe under way, nothing else would resume it.
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

/** A rejection is an answer, so the broker works. A lost delivery is no evidence either way. */
const signals = { lost: "Uncounted", rejected: "Succeeded", transient: "Failed", unknown: "Failed" } as const

/** Keeps the messages whose settlement, or its copy, is rejected. */
const keeper = ({ flow, load, reporter, settleAgain, timers }: Dependencies) => {
  const kept = new Map<Item, Kept>()

  const keep = (item: Item, how: Kept): void => {
    kept.set(item, how)
    load.kept = kept.size
    item.stage = "kept"
    timers.after(how.pause, () => {
      // If the item was lost in the meantime, it is no longer kept.
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
      // Without a copy, this process waits for the delay.
      const native = withoutCopy(settlement)
      if (native === undefined) quarantine(item, failure, settlement)
      else keep(item, native)
    }
  }
}

const cutOf = (settlement: Settlement.Settlement) => ("cut" in settlement ? settlement.cut : undefined)

/** Returns the settlement with the whole copy. */
const whole = (settlement: Settlement.Settlement): Settlement.Settlement =>
  "cut" in settlement ? { ...settlement, cut: undefined } : settlement

/** Returns the settlement with a smaller copy; `undefined` if it publishes no copy, or none can be smaller. */
const cutMore = (settlement: Settlement.Settlement): Settlement.Settlement | undefined => {
  const { _tag } = settlement
  if (_tag === "Ack" || _tag === "Drop" || (_tag === "Release" && settlement.delay === 0)) return undefined
  const cut = truncations[settlement.cut === undefined ? 0 : truncations.indexOf(settlement.cut) + 1]
  return cut === undefined ? undefined : { ...settlement, cut }
}

/** Returns how to settle a delayed message without a copy, after its delay; `undefined` for all others. */
const withoutCopy = (settlement: Settlement.Settlement): Kept | undefined => {
  if (settlement._tag === "Retry" && settlement.delay > 0) {
    return { pause: settlement.delay, wanted: Settlement.Retry(0, settlement.error), isQuarantined: false }
  }
  if (settlement._tag === "Release" && settlement.delay > 0) {
    return { pause: settlement.delay, wanted: Settlement.Release(), isQuarantined: false }
  }
  return undefined
}
