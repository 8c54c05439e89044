/** Reads what processes do with deliveries: which attempt each arrival, run and settlement belongs to. */
import { familyOf } from "../../Scenario.ts"
import type { Given } from "../../History.ts"
import { hasName } from "./law.ts"
import type { EntryOf, Run, Seen, Settling } from "./Lives.ts"
import type { Registry } from "./registry.ts"
import { isTimedOut } from "./timing.ts"

/** Readers of arrivals, runs and settlements. */
export const attempting = ({ attemptOf, begin, deliveries, deliveryOf, known, processOf, scenario }: Registry) => {
  const arrive = (seen: Seen<"Arrived">): void => {
    const { entry } = seen
    const process = processOf(entry.process)
    const life = deliveryOf(entry.delivery, entry.key, process)
    life.arrived = seen
    process.deliveries.push(life)
    const before = known(process, life.copy)
    // A returned delivery is redelivered as another attempt, even if the return had no answer.
    if (before !== undefined && before.decided === undefined && before.settlings.length > 0) before.isOver = true
    const isAnother = before !== undefined && !hasName({ scenario }, life.copy)
    life.attempt = isAnother ? begin(process, life.copy, before) : attemptOf(process, life.copy)
    life.attempt.deliveries.push(life)
    life.enlisted = Math.max(...life.attempt.deliveries.map(({ enlisted }) => enlisted))
    life.isRefused = life.attempt.deliveries.some(({ isRefused }) => isRefused)
  }

  const turn = (run: Run, given: Given): void => {
    const { process } = run
    const life = deliveryOf(given.delivery, given.key, process)
    const before = life.attempt?.isOver === false ? life.attempt : attemptOf(process, life.copy)
    const last = before.turns.at(-1)
    // A delivery that arrived while the handler ran has replaced the lost one.
    const came = life.arrived ?? run.began
    const hasEnded = last?.run.ended !== undefined && last.run.ended.index < came.index
    // A promise whose time is over is abandoned; the end of an Effect is awaited.
    const isOver =
      hasEnded || (process.version?.promise === true && last !== undefined && isTimedOut(last.run, came.entry.at))
    const isLost = last !== undefined && last.of !== life && isOver
    const isNext = before.decided === undefined ? isLost : before.decided.asked.tag === "Retry"
    const attempt = isNext ? begin(process, life.copy, before) : before
    if (!attempt.deliveries.includes(life)) attempt.deliveries.push(life)
    life.attempt = attempt
    attempt.turns.push({ run, given, of: life })
    life.runs.push(run)
  }

  const enlist = ({ entry, index }: Seen<"Enlisted">): void => {
    for (const each of entry.deliveries) {
      // The core acks the delivery that has replaced this one.
      for (const life of deliveries.get(each)?.attempt?.deliveries ?? []) {
        life.enlisted = index
        life.isRefused = entry.isRefused
      }
    }
  }

  const ask = (index: number, { at, delivery, process, settlement }: EntryOf<"Asked">): void => {
    const life = deliveryOf(delivery, 0, processOf(process))
    // It may be redelivered after its return, and before the answer to that.
    const sent = life.attempt?.isOver === true ? life.attempt.settlings[0] : undefined
    const isLater = sent !== undefined && (life.arrived?.index ?? -1) > sent.index
    const attempt = isLater || life.attempt === undefined ? attemptOf(life.process, life.copy) : life.attempt
    if (!attempt.deliveries.includes(life)) attempt.deliveries.push(life)
    life.attempt = attempt
    const settling: Settling = { index, at, asked: settlement, of: life, attempt, answer: -1, fate: undefined }
    attempt.settlings.push(settling)
    if (settlement.tag !== "Release") attempt.decided ??= settling
    life.settlings.push(settling)
    life.process.settlings.push(settling)
  }

  const answer = (index: number, { delivery, fate }: EntryOf<"Answered">): void => {
    const settling = deliveries.get(delivery)?.settlings.find((each) => each.answer < 0)
    if (settling === undefined) return
    settling.answer = index
    settling.fate = fate ?? "taken"
    const { tag } = settling.asked
    // A broker with leases may report a message as removed, and deliver it again.
    const goesBack = tag === "Retry" || tag === "Release" || familyOf(scenario) === "lease"
    if (settling.fate === "taken" && goesBack) settling.attempt.isOver = true
    // The message is done, by its transaction. If its lease was lost instead, its next delivery has nothing to do with this one.
    const { enlisted, isRefused } = settling.of
    const isLast = settling.attempt.deliveries.at(-1) === settling.of
    if (settling.fate === "lost" && enlisted >= 0 && !isRefused && isLast) settling.attempt.isOver = true
  }

  return { arrive, turn, enlist, ask, answer }
}
