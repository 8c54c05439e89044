/** Which settlements a process may request at a moment, by the calls and the end of its handler. */
import type { Version } from "../../Scenario.ts"
import * as Allowed from "./Allowed.ts"
import { isBehind, mayFollow } from "./grouping.ts"
import type { Attempt, DeliveryLife, Lives, Run, Seen, Settling, Turn } from "./Lives.ts"
import { decidedAt, isTimedOut, mustBeTimedOut, slack } from "./timing.ts"
import * as Verdict from "./Verdict.ts"

/** The possible ends of a run for the core. `open`: it has not ended. */
type Outcome = "returned" | "threw" | "timed out" | "interrupted" | "open"

const outcomesOf = ({ run }: Turn, settling: Settling): ReadonlyArray<Outcome> => {
  const { ended, process } = run
  const isDraining = process.draining !== undefined && process.draining.index < settling.index
  const drained: ReadonlyArray<Outcome> = isDraining ? ["interrupted"] : []
  const hasEnded = ended !== undefined && ended.index < settling.index
  const at = hasEnded ? ended.entry.at : settling.at
  // An uninterruptible Effect keeps its own end; a promise is abandoned.
  if (mustBeTimedOut(run, at) && (!hasEnded || process.version?.promise === true)) return ["timed out", ...drained]
  const timedOut: ReadonlyArray<Outcome> = isTimedOut(run, at) ? ["timed out"] : []
  if (!hasEnded) return ["open", ...timedOut, ...drained]
  const { how } = ended.entry
  if (how === "interrupted") return [...timedOut, ...drained]
  // The program has returned the batch, which it had pulled.
  if (how === "released") return ["interrupted", ...timedOut]
  // An uninterruptible one may end after that, and the interruption still counts.
  return isInterrupted(run, at) ? [how, ...timedOut, ...drained] : [how, ...timedOut]
}

/** Whether a drain may have interrupted a run by then. */
const isInterrupted = ({ process: { clock, draining, version } }: Run, at: number): boolean =>
  draining !== undefined && clock.most(draining.entry.at, at) >= (version?.drainTimeout ?? 0) - slack

/** The possible verdicts of the calls before a settlement: calls on a handler whose time, or drain, is over come too late. */
const verdictsOf = ({ given, run }: Turn, settling: Settling): ReadonlyArray<Verdict.Verdict> => {
  const verdicts = [Verdict.none]
  for (const { at, call, index } of run.calls) {
    if (index > settling.index || (run.ended !== undefined && index > run.ended.index)) break
    const last = verdicts.at(-1) ?? Verdict.none
    const next = Verdict.after(last, call, given.key)
    if (isTimedOut(run, at) || isInterrupted(run, at)) verdicts.push(next)
    else verdicts[verdicts.length - 1] = next
  }
  return verdicts
}

/** Errors that decide about their message. */
const decisive = new Set(["permanent", "drop", "retryAfter"])

/**
 * Whether a delivery may be known to be lost when it is settled: by a new connection, by a late extension of its lease, or by an
 * unanswered extension, in which case only the fate of the settlement shows it.
 */
const mayBeLost = ({ back, copy, disconnected, handedOut }: DeliveryLife, { fate, index }: Settling): boolean => {
  if (fate === "lost") return true
  const { deliveries, gone } = copy
  const later = deliveries.find((each) => (each.handedOut?.index ?? -1) > (handedOut?.index ?? Infinity))?.handedOut
  const signs = [back?.index, gone?.index, later?.index, disconnected < 0 ? undefined : disconnected]
  return signs.some((sign) => sign !== undefined && sign < index)
}

/**
 * Whether a rate limit certainly lets another run begin after the end of one and before `until`. If the messages of a batch run one by
 * one, those that have not begun have a claim on it.
 */
const mayBegin = ({ clock, runs, version }: Run["process"], { entry }: Seen<"Ended">, until: number): boolean => {
  const limit = version?.rateLimit
  if (limit === undefined) return true
  const recent = runs.filter(
    ({ began }) => began.index < until && clock.least(began.entry.at, entry.at) < limit.per + slack
  )
  return version?.each !== true && recent.length < limit.max
}

/** Whether the policy reruns the handler in the same delivery before the failure counts. */
const isImmediate = (attempt: Attempt, { run }: Turn, version: Version, settling: Settling): boolean => {
  const { ended } = run
  const hasEnded = ended !== undefined && ended.index < settling.index && !isTimedOut(run, ended.entry.at)
  const isFailure = hasEnded && ended.entry.how === "threw" && !decisive.has(ended.entry.error ?? "")
  const isQuiet = run.process.draining === undefined || run.process.draining.index > settling.index
  const isSame = attempt.deliveries.every((each) => !mayBeLost(each, settling))
  const begun = attempt.turns.filter((turn) => turn.run.began.index < settling.index)
  const isSuspect = begun.some(({ given }) => given.attempts > version.maxAttempts)
  const isLimited = ended !== undefined && !mayBegin(run.process, ended, settling.index)
  const mayBeDone = attempt.deliveries.some(({ enlisted }) => enlisted >= 0)
  return isFailure && isQuiet && isSame && !isSuspect && !isLimited && !mayBeDone && begun.length <= version.immediate
}

/** Whether a message may be returned because its process stops for lack of a budget for its dead letter. */
const isDenied = ({ at, attempt: { process } }: Settling): boolean =>
  process.version?.budget !== undefined && process.draining !== undefined && at >= process.draining.entry.at - slack

/** The age of a message, unless a policy needs it. */
const ageless = [0, 0] as const

/** Milliseconds of a foreign producer's timestamp: AMQP has seconds. */
const resolutionOf = ({ scenario }: Lives): number => (scenario.kind === "rabbitmq" ? 1000 : 1)

const ageOf = (lives: Lives, settling: Settling): readonly [number, number] => {
  const { at, attempt, index } = settling
  const { copy, process } = attempt
  const { plan, sending, copies } = copy.message
  if (sending === undefined || plan === undefined || plan.metadata !== undefined) return [-Infinity, Infinity]
  const [least, most] = [decidedAt(settling) + process.clock.leastAhead(0, at), at + process.clock.mostAhead(0, at)]
  const sent = sending.entry.at
  // A message that may have been redriven begins anew.
  const isVague = plan.by === "foreign" || copies.filter((each) => each.parent === undefined).length > 1
  if (!isVague) return [least - sent - 1000, most - sent + 1]
  // A message without metadata is as old as its adapter reports, perhaps by the clock of the receiving process.
  const begins = copies
    .flatMap(({ deliveries }) => deliveries)
    .flatMap(({ arrived, process: { clock } }) =>
      arrived !== undefined && arrived.index < index ? arrived.entry.at + clock.leastAhead(0, arrived.entry.at) : []
    )
  return [-Infinity, most - Math.min(sent, ...begins) + resolutionOf(lives)]
}

const attemptsOf = ({ given, of }: Turn, { deliveries }: Attempt, settling: Settling): readonly [number, number] => {
  let most = given.attempts
  for (const { arrived } of deliveries.slice(deliveries.indexOf(of) + 1)) {
    if (arrived !== undefined && arrived.index < settling.index) most = Math.max(most, arrived.entry.attempts)
  }
  return [given.attempts, most]
}

/**
 * A retry that the previous attempt requested, and whose end was open when this attempt's first delivery arrived: it is requested
 * for that delivery as well.
 */
const asBefore = ({ deliveries, prior, process }: Attempt, { at }: Settling): ReadonlyArray<Allowed.Allowed> => {
  const came = deliveries[0]?.arrived?.index ?? -1
  const decided = prior?.decided
  if (prior === undefined || decided?.asked.tag !== "Retry") return []
  const isUnanswered = prior.settlings.some(({ answer, fate }) => fate !== "taken" || answer > came)
  // It arrived during the retry too, and this one has replaced it.
  const isUnsettled = prior.deliveries.some(({ settlings }) => settlings.every(({ index }) => index > came))
  const { delay } = decided.asked
  return isUnanswered || isUnsettled
    ? [{ tag: "Retry", delay, passed: process.clock.most(decidedAt(decided), at) }]
    : []
}

/** Settlements of a message that no handler has seen in this attempt. */
const unseen = (settling: Settling, circumstances: Allowed.Circumstances): ReadonlyArray<Allowed.Allowed> => {
  const { attempt, of } = settling
  const { copy, prior, process } = attempt
  const { version } = circumstances
  const allowed: Array<Allowed.Allowed> = [{ tag: "Release" }, ...asBefore(attempt, settling)]
  const body = copy.message.plan?.body
  if (body === "undecodable") allowed.push(Allowed.giveUp(version, "undecodable"))
  if ((of.arrived?.entry.attempts ?? 0) > version.maxDeliveries) {
    allowed.push(Allowed.giveUp(version, "too-many-deliveries"))
  }
  // A removal that the broker has answered, but not made, is made again.
  if (prior?.isOver === true && prior.decided !== undefined && prior.decided.asked.tag !== "Retry") {
    allowed.push({ tag: "Ack" })
  }
  // A message that a copy has settled is redelivered if its removal was lost.
  const isStored = copy.children.some(
    ({ parent, stored }) => parent?.process === process && (stored?.index ?? Infinity) < settling.index
  )
  if (isStored) allowed.push({ tag: "Ack" })
  // Its codec may have exceeded its time, which counts as a failure.
  if (body === "neverDecoded" || body === "slowToDecode") allowed.push(...Allowed.retry(circumstances, undefined))
  return allowed
}

const allowedFor = (
  circumstances: Allowed.Circumstances,
  verdict: Verdict.Verdict,
  outcome: Outcome,
  error: string | undefined,
  isEnlisted: boolean
): ReadonlyArray<Allowed.Allowed> => {
  const { attempts, version } = circumstances
  // After an ack in a transaction, the broker's answer to a failure shows whether that was committed.
  if (isEnlisted) {
    if (outcome === "open") return []
    const isEnded = verdict.tag !== "retry" && outcome !== "interrupted"
    if (isEnded || verdict.tag === "ack") return Allowed.thrown(circumstances, outcome === "threw" ? error : undefined)
  }
  if (verdict.tag === "ack") return [{ tag: "Ack" }]
  if (verdict.tag === "retry") {
    // A retry whose delay may still be set waits for the end; the end of a message has no delay.
    const waits = outcome === "open" && verdict.own === undefined && attempts[1] < version.maxAttempts
    if (waits) return []
    const given = verdict.own ?? verdict.all
    if (verdict.failed !== undefined) return Allowed.thrown(circumstances, verdict.failed, given)
    return Allowed.retry(circumstances, given ?? (error === "retryAfter" ? Allowed.retryAfter : undefined))
  }
  switch (outcome) {
    case "returned":
      return [{ tag: "Ack" }]
    case "threw":
      return Allowed.thrown(circumstances, error)
    case "timed out":
      return Allowed.retry(circumstances, undefined)
    case "interrupted":
      return [{ tag: "Release" }]
    case "open":
      return []
  }
}

/**
 * The settlements that are allowed at this moment. `undefined` if unknown: the process is not in the scenario, or two copies of
 * one message are in one batch, and calls do not show which they belong to.
 */
export const allowedAt = (lives: Lives, settling: Settling): ReadonlyArray<Allowed.Allowed> | undefined => {
  const { attempt, of } = settling
  const { version } = attempt.process
  const queue = of.copy.stored?.entry.queue
  if (version === undefined || queue === undefined || !lives.work.has(queue)) return undefined
  const age = version.maxAge === undefined ? ageless : ageOf(lives, settling)
  const arrived = of.arrived?.entry.attempts ?? 1
  const begun = attempt.turns.filter(({ run }) => run.began.index < settling.index)
  // Another run cannot change an earlier decision, unless a message of a group runs again with an earlier one.
  const isDecided = (each: Turn): boolean =>
    !isBehind(lives, each) && verdictsOf(each, settling).every(({ tag }) => tag !== undefined)
  const turn = begun.find(isDecided) ?? begun.at(-1)
  if (turn === undefined) return unseen(settling, { version, attempts: [1, arrived], passed: 0, age })

  const { began, ended } = turn.run
  const { given } = began.entry
  if (given.length > 1 && given.filter(({ key }) => key === turn.given.key).length > 1) return undefined
  const verdicts = verdictsOf(turn, settling)
  const isUndecided = verdicts.every(({ tag }) => tag === undefined)
  // It is returned with an earlier message of its group.
  const isReturned = begun.some((each) => mayFollow(lives, each, settling)) || isDenied(settling)
  const allowed: Array<Allowed.Allowed> = isReturned ? [{ tag: "Release" }] : []
  if (version.immediate > 0 && isUndecided && isImmediate(attempt, turn, version, settling)) return allowed
  const passed = attempt.process.clock.most(began.entry.at, settling.at)
  const circumstances = { version, attempts: attemptsOf(turn, attempt, settling), passed, age }
  const error = ended !== undefined && ended.index < settling.index ? ended.entry.error : undefined
  const outcomes = outcomesOf(turn, settling)
  const isEnlisted = turn.of.enlisted >= 0 && turn.of.enlisted < settling.index
  for (const verdict of verdicts) {
    for (const outcome of outcomes) allowed.push(...allowedFor(circumstances, verdict, outcome, error, isEnlisted))
  }
  return allowed
}
