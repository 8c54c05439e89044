import { familyOf } from "../../Scenario.ts"
import { isBehind } from "../internal/grouping.ts"
import { hasName, isWork, type Law, of, violation } from "../internal/law.ts"
import type { Attempt, CopyLife, Lives, Turn } from "../internal/Lives.ts"
import { isTimedOut } from "../internal/timing.ts"
import * as Verdict from "../internal/Verdict.ts"

/** Whether a run of a message certainly succeeded. */
const isSuccess = ({ given, run }: Turn): boolean => {
  const { began, calls, ended } = run
  if (ended === undefined || isTimedOut(run, ended.entry.at)) return false
  if (began.entry.given.filter(({ key }) => key === given.key).length > 1) return false
  const { tag } = calls
    .filter(({ index }) => index < ended.index)
    .reduce((verdict, { call }) => Verdict.after(verdict, call, given.key), Verdict.none)
  return tag === "ack" || (tag === undefined && ended.entry.how === "returned")
}

/**
 * Whether a process that had made a copy received the confirmation, which may be lost with the original's delivery. A settlement
 * before the copy was stored was something else: the message's own return, because copies were refused.
 */
const isConfirmed = ({ scenario }: Lives, { settlings }: Attempt, { parent, stored }: CopyLife): boolean => {
  const since = stored?.index ?? -1
  const made = settlings.findLast(({ index, of }) => of === parent && index < since)
  if (made === undefined || made.answer < since) return false
  // A client of leases knows of the copy, and reports that it could not remove the original.
  return made.fate === "taken" || (familyOf(scenario) === "lease" && made.fate === "lost")
}

/** Index of what forbids another run in this process; -1 if nothing does. */
const forbidden = (lives: Lives, attempt: Attempt, turn: Turn): number => {
  const { decided, prior, turns } = attempt
  const began = turn.run.began.index
  if (decided !== undefined && decided.index < began && decided.asked.tag !== "Retry") return decided.index
  const earlier = turns.slice(0, turns.indexOf(turn)).findLast((each) => isSuccess(each) && !isBehind(lives, each))
  if (earlier !== undefined) return earlier.run.ended?.index ?? -1
  if (prior === undefined) return -1
  const isTaken = prior.settlings.some(({ fate }) => fate === "taken")
  if (prior.decided?.asked.tag === "Retry" && !(familyOf(lives.scenario) === "lease" && isTaken)) {
    // Its copy is stored: the redelivery is the original, whose removal was lost.
    const copy = attempt.copy.children.find(
      (each) => (each.stored?.index ?? Infinity) < began && isConfirmed(lives, prior, each)
    )
    return copy?.stored?.index ?? -1
  }
  const isReleased = prior.settlings.length > 0
  return isReleased ? -1 : (prior.turns.findLast(isSuccess)?.run.ended?.index ?? -1)
}

/**
 * A process does not run a message again after its decision. The only excuse is a redelivery that cannot be recognised: a foreign
 * producer's message that was never copied, on a broker that pushes.
 */
export const redelivered: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    return attempt.turns.flatMap((turn) => {
      const index = forbidden(lives, attempt, turn)
      if (index < 0 || (attempt.turns[0]?.of !== turn.of && !hasName(lives, attempt.copy))) return []
      if (attempt.prior !== undefined && !hasName(lives, attempt.copy)) return []
      const { began } = turn.run
      const what = `${attempt.process.name} ran a handler again for what it had decided on; expected the settlement again, without a run.`
      return [violation("again", began.entry.at, of(turn.of), what, [index, turn.of.handedOut?.index, began.index])]
    })
  })
