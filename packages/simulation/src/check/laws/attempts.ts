import { familyOf } from "../../Scenario.ts"
import { fewestBefore, isForged, knownUnseen, mostAt, passedBy, retriesOf } from "../internal/counting.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { Attempt, DeliveryLife, Lives, Turn } from "../internal/Lives.ts"

/**
 * The maximum attempts of a run that continues while another delivery has begun: other processes may have had the message between
 * the two, as this process knew when the later one arrived.
 */
const mostAfter = ({ deliveries, turns }: Attempt, { of: { copy }, of }: Turn): number => {
  const first = turns[0]
  if (first === undefined || first.of === of) return Infinity
  const between = copy.deliveries.slice(copy.deliveries.indexOf(first.of) + 1, copy.deliveries.indexOf(of))
  const isOurs = (each: DeliveryLife): boolean =>
    deliveries.includes(each) && (each.arrived?.index ?? Infinity) < (of.arrived?.index ?? 0)
  return first.given.attempts + between.filter((each) => !isOurs(each)).length
}

/** Whether a power cut may have undone settlements and counts, of its copy or an earlier one. */
const isRestarted = ({ copy: { backs, parent } }: DeliveryLife): boolean =>
  backs.some(({ entry }) => entry.why === "restart") || (parent !== undefined && isRestarted(parent))

/** Whether a process could not publish between receiving a delivery and passing it to its program. */
const isCutOff = ({ history }: Lives, { arrived, handedOut, process }: DeliveryLife): boolean => {
  const [from, until] = [handedOut?.index ?? 0, arrived?.index ?? 0]
  const hasEnded = (operation: number): boolean =>
    history.slice(0, from).some((entry) => entry._tag === "Operated" && entry.operation === operation)
  return history
    .slice(0, until)
    .some(
      (entry, index) =>
        (entry._tag === "Fault" && index >= from && entry.site.includes(`${process.name} publish`)) ||
        (entry._tag === "Operates" && entry.what === "Throttle" && !hasEnded(entry.operation))
    )
}

/** Whether the copies that would count deliveries are refused, or failed: a classic queue does not count. */
const isUncounted = (lives: Lives, { copy: { deliveries, message, parent } }: DeliveryLife): boolean => {
  const { rabbitmq, refusals } = lives.scenario
  if (rabbitmq?.queueType !== "classic" && rabbitmq?.adopted !== "classic") return false
  return (
    refusals.some(({ key }) => key === message.key) ||
    deliveries.some((each) => isCutOff(lives, each)) ||
    (parent !== undefined && isUncounted(lives, parent))
  )
}

/** The error in a handler run's number of attempts. */
const faultOf = (lives: Lives, attempt: Attempt, turn: Turn): string | undefined => {
  const { process, turns } = attempt
  const { version } = process
  if (version === undefined) return undefined
  const { attempts } = turn.given
  const { immediate, maxDeliveries } = version
  const runs = turns.filter((each) => each.of === turn.of)
  const nth = runs.indexOf(turn)
  if (nth > immediate) return `run ${nth + 1} of one delivery; expected at most ${immediate + 1}`
  const before = runs[nth - 1]?.run.ended?.entry
  if (before?.how === "interrupted")
    return "a run right after one that was timed out; expected none in the same delivery"

  // A delivery that replaced one whose handler runs in this process is known to be the same attempt.
  const told = Math.max(attempts, (turn.of.arrived?.entry.attempts ?? 0) - passedBy(turn.of))
  // A message of a group is returned whenever an earlier one is.
  const isLimited = lives.scenario.fifo === undefined && turns[0]?.of === turn.of
  if (told > maxDeliveries && isLimited)
    return `a run at delivery ${told}; expected a dead letter beyond ${maxDeliveries}`

  const isUndone = familyOf(lives.scenario) === "store" && isRestarted(turn.of)
  const limit = Math.max(...lives.scenario.versions.map(({ maxAttempts }) => maxAttempts))
  const retries = retriesOf(lives, turn.of)
  if (retries >= limit && !isUndone) return `a run after ${retries} retries; expected at most ${limit} attempts`

  const isForgotten =
    familyOf(lives.scenario) === "lossy" && turn.of.copy.backs.some(({ entry }) => entry.why === "restart")
  const mayBeFewer = isForgotten || isUndone || isUncounted(lives, turn.of)
  const fewest = fewestBefore(lives, turn.of, turn.of) + 1
  if (attempts < fewest && !mayBeFewer) return `attempt ${attempts}; expected at least ${fewest}, as handlers began it`
  const most = Math.min(mostAt(lives, turn.of) - knownUnseen(lives, turn.of), mostAfter(attempt, turn))
  if (attempts > most && !isForged(turn.of))
    return `attempt ${attempts}; expected at most ${most}, as it was handed out`
  return undefined
}

/** Attempts are counted: never too few, and none that, as this process knows, reached no handler. */
export const attempts: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    return attempt.turns.flatMap((turn) => {
      const fault = faultOf(lives, attempt, turn)
      if (fault === undefined) return []
      const { began } = turn.run
      const shown = turn.of.copy.deliveries.map(({ handedOut }) => handedOut?.index)
      const what = `${attempt.process.name} began ${fault}.`
      return [violation("attempts", began.entry.at, of(turn.of), what, [...shown, began.index])]
    })
  })
