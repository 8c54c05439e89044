/** Reads a history once, and answers the lives of all that is in it. */
import type { Given, History } from "../../History.ts"
import type { Scenario } from "../../Scenario.ts"
import { hasName } from "./law.ts"
import type {
  Attempt,
  Bound,
  CopyLife,
  DeliveryLife,
  EntryOf,
  Lives,
  ProcessLife,
  Run,
  Seen,
  Settling
} from "./Lives.ts"
import * as Registry from "./registry.ts"
import { isTimedOut } from "./timing.ts"

/** The lives of a history. */
export const readLives = (scenario: Scenario, history: History): Lives => {
  const registry = Registry.make(scenario)
  const { attemptOf, begin, copyOf, deliveries, deliveryOf, handOut, keyOf, known, processOf } = registry
  const work = new Set<string>()
  const runs: Array<Run> = []
  const byNumber = new Map<number, Run>()
  const maxAge = Math.min(...scenario.versions.map((version) => version.maxAge ?? Infinity))
  let calm: Lives["calm"]
  let end: Lives["end"]

  const arrive = (seen: Seen<"Arrived">): void => {
    const { entry } = seen
    const process = processOf(entry.process)
    const life = deliveryOf(entry.delivery, entry.key, process)
    life.arrived = seen
    process.deliveries.push(life)
    const before = known(process, life.copy)
    // What was given back comes as another attempt, even if nobody answered.
    if (before !== undefined && before.decided === undefined && before.settlings.length > 0) before.isOver = true
    const isAnother = before !== undefined && !hasName({ scenario }, life.copy)
    life.attempt = isAnother ? begin(process, life.copy, before) : attemptOf(process, life.copy)
    life.attempt.deliveries.push(life)
  }

  /** The attempt that a delivery is part of now. Where nothing names the copy, each delivery is an attempt of its own. */
  const currentOf = (process: ProcessLife, life: DeliveryLife): Attempt =>
    life.attempt === undefined || hasName({ scenario }, life.copy) ? attemptOf(process, life.copy) : life.attempt

  const turn = (run: Run, given: Given): void => {
    const { process } = run
    const life = deliveryOf(given.delivery, given.key, process)
    const before = currentOf(process, life)
    const last = before.turns.at(-1)
    const isLost =
      last !== undefined &&
      last.of !== life &&
      (last.run.ended !== undefined || isTimedOut(last.run, run.began.entry.at))
    const isNext = before.decided === undefined ? isLost : before.decided.asked.tag === "Retry"
    const attempt = isNext ? begin(process, life.copy, before) : before
    if (!attempt.deliveries.includes(life)) attempt.deliveries.push(life)
    attempt.turns.push({ run, given, of: life })
    life.runs.push(run)
  }

  const ask = (index: number, { at, delivery, process, settlement }: EntryOf<"Asked">): void => {
    const life = deliveryOf(delivery, 0, processOf(process))
    const attempt = currentOf(life.process, life)
    const settling: Settling = { index, at, asked: settlement, of: life, attempt, answer: -1, fate: undefined }
    attempt.settlings.push(settling)
    if (settlement.tag !== "Release") attempt.decided ??= settling
    life.settlings.push(settling)
    life.process.settlings.push(settling)
  }

  const answer = (index: number, { delivery, fate = undefined }: EntryOf<"Answered">): void => {
    const settling = deliveries.get(delivery)?.settlings.find((each) => each.answer < 0)
    if (settling === undefined) return
    settling.answer = index
    settling.fate = fate ?? "taken"
    const { tag } = settling.asked
    if (settling.fate === "taken" && (tag === "Retry" || tag === "Release")) settling.attempt.isOver = true
  }

  /** Before which no handler may begin a copy, as its metadata says. */
  const writtenOf = (index: number, copy: CopyLife, process: ProcessLife | undefined): Bound | undefined => {
    const { message, parent } = copy
    const settling = parent?.settlings.at(-1)
    if (settling?.asked.tag === "Retry") {
      return { at: settling.at + settling.asked.delay, since: settling.at, process, index }
    }
    if (parent !== undefined && parent.copy.stored !== undefined && work.has(parent.copy.stored.entry.queue)) {
      return parent.copy.bound
    }
    const { sending } = message
    if (sending === undefined) return undefined
    // No wait ends after `maxAge`.
    const at = Math.min(sending.entry.earliest, sending.entry.at + maxAge)
    return { at, since: sending.entry.at, process: undefined, index: sending.index }
  }

  const store = (seen: Seen<"Stored">): void => {
    const { entry, index } = seen
    const copy = copyOf(entry.copy, entry.key)
    copy.stored = seen
    copy.parent = entry.of === undefined ? undefined : deliveries.get(entry.of)
    copy.parent?.copy.children.push(copy)
    if (!work.has(entry.queue)) return
    copy.written = writtenOf(index, copy, entry.process === undefined ? undefined : processOf(entry.process))
    copy.bound = copy.written
  }

  const back = (seen: Seen<"Back">): void => {
    const { delivery, key, why } = seen.entry
    const copy = copyOf(seen.entry.copy, key)
    copy.backs.push(seen)
    const life = deliveries.get(delivery)
    if (life !== undefined) life.back = seen
    const settling = life?.settlings.at(-1)
    if (why === "asked" && settling?.asked.tag === "Retry") {
      const { asked, at: since, index } = settling
      copy.bound = { at: since + asked.delay, since, process: life?.process, index }
    } else if (why === "restart" && scenario.kind === "lossy") copy.bound = copy.written
  }

  history.forEach((entry, index) => {
    switch (entry._tag) {
      case "Sending":
        work.add(entry.queue)
        keyOf(entry.key).sending = { index, entry }
        return
      case "Sent":
        keyOf(entry.key).sent = { index, entry }
        return
      case "Stored":
        return store({ index, entry })
      case "HandedOut":
        return void handOut(copyOf(entry.copy, entry.key), processOf(entry.process), entry.delivery, { index, entry })
      case "Back":
        return back({ index, entry })
      case "Gone":
        copyOf(entry.copy, entry.key).gone = { index, entry }
        return
      case "Started": {
        const process = processOf(entry.process)
        process.started = { index, entry }
        process.version = scenario.versions[entry.version]
        return
      }
      case "Draining":
        processOf(entry.process).draining = { index, entry }
        return
      case "Drained":
        processOf(entry.process).drained = { index, entry }
        return
      case "Killed":
        processOf(entry.process).killed ??= { index, entry }
        return
      case "Frozen":
        return void processOf(entry.process).frozen.push({ index, entry })
      case "Credit":
        return void processOf(entry.process).credits.push({ index, entry })
      case "Arrived":
        return arrive({ index, entry })
      case "Reconnected":
        for (const each of entry.gone) {
          const life = deliveries.get(each)
          if (life !== undefined && life.disconnected < 0) life.disconnected = index
        }
        return
      case "Began": {
        const run: Run = { process: processOf(entry.process), began: { index, entry }, ended: undefined, calls: [] }
        runs.push(run)
        byNumber.set(entry.run, run)
        run.process.runs.push(run)
        for (const given of entry.given) turn(run, given)
        return
      }
      case "Called":
        return void byNumber.get(entry.run)?.calls.push({ index, at: entry.at, call: entry.call })
      case "Ended": {
        const run = byNumber.get(entry.run)
        if (run !== undefined) run.ended ??= { index, entry }
        return
      }
      case "Asked":
        return ask(index, entry)
      case "Answered":
        return answer(index, entry)
      case "Told":
        return void processOf(entry.process).told.push({ index, entry })
      case "Calm":
        calm = { index, entry }
        return
      case "End":
        end = { index, entry }
        return
      case "NotSent":
      case "Health":
      case "Operates":
      case "Operated":
      case "Fault":
      case "Defect":
    }
  })

  const { attempts, copies, keys, processes } = registry
  return { scenario, history, work, keys, copies, deliveries, processes, runs, attempts, calm, end }
}
