/**
 * Situations that a run has seen, beyond lines of code. A campaign whose seeds never see one of them proves nothing about it, and
 * fails.
 */
import type { Entry, History } from "./History.ts"

/** A situation, and whether a history has it. */
type Situation = readonly [name: string, isIn: (history: History) => boolean]

const some =
  (is: (entry: Entry) => boolean) =>
  (history: History): boolean =>
    history.some(is)

const fault = (kind: string): Situation => [
  `fault: ${kind}`,
  some((entry) => entry._tag === "Fault" && entry.kind === kind)
]

const person = (what: string): Situation => [
  `person: ${what}`,
  some((entry) => entry._tag === "Operated" && entry.what === what)
]

const told = (event: string, detail?: string): Situation => [
  detail === undefined ? `event: ${event}` : `event: ${event} ${detail}`,
  some((entry) => entry._tag === "Told" && entry.event === event && (detail === undefined || entry.detail === detail))
]

const fate = (of: "lost" | "transient" | "unknown" | "rejected"): Situation => [
  `settlement: ${of}`,
  some((entry) => entry._tag === "Answered" && entry.fate === of)
]

/** A settlement failed while a handler of the same process ran. */
const failedBeside = (history: History): boolean => {
  const open = new Map<string, number>()
  for (const entry of history) {
    if (entry._tag === "Began") open.set(entry.process, (open.get(entry.process) ?? 0) + 1)
    else if (entry._tag === "Ended") open.set(entry.process, (open.get(entry.process) ?? 0) - 1)
    else if (entry._tag === "Answered" && entry.fate !== undefined && (open.get(entry.process) ?? 0) > 0) return true
  }
  return false
}

/** A message is delivered to a process that still runs a handler for it. */
const redeliveredBeside = (history: History): boolean => {
  const running = new Map<number, ReadonlyArray<number>>()
  for (const entry of history) {
    if (entry._tag === "Began")
      running.set(
        entry.run,
        entry.given.map(({ key }) => key)
      )
    else if (entry._tag === "Ended") running.delete(entry.run)
    else if (entry._tag === "Arrived") for (const keys of running.values()) if (keys.includes(entry.key)) return true
  }
  return false
}

const reason = (name: string): Situation => [
  `dead letter: ${name}`,
  some((entry) => entry._tag === "Stored" && entry.queue !== "work" && entry.reason === name)
]

const refusedJob = (history: History): boolean => {
  let isAtWork = 0
  for (const entry of history) {
    if (entry._tag === "Operates" && entry.what === "Redrive") isAtWork++
    else if (entry._tag === "Operated" && entry.what === "Redrive") isAtWork--
    else if (isAtWork > 0 && "process" in entry && entry.process === "operator") {
      // A removal that failed, or a page that was lost with its connection.
      if (entry._tag === "Reconnected" || (entry._tag === "Answered" && entry.fate !== undefined)) return true
    }
  }
  return false
}

/** Every situation. */
export const situations: ReadonlyArray<Situation> = [
  ...["cut", "lostAnswer", "lostRequest", "late", "twice", "busy", "echo"].map(fault),
  ...["Redrive", "Purge", "List", "Pause", "Restart", "Throttle"].map(person),
  ...["lost", "transient", "unknown", "rejected"].map((of) => fate(of as "lost")), // They are its members.
  ...["retries-exhausted", "permanent", "undecodable", "too-old", "too-many-deliveries"].map(reason),
  told("Quarantined"),
  told("LeaseLost"),
  told("CallIgnored"),
  told("Released"),
  told("Dropped"),
  told("BackoffEntered", "handler"),
  told("BackoffEntered", "broker"),
  ["process: killed by its handler", some((entry) => entry._tag === "Killed" && entry.because === "handler")],
  ["process: killed", some((entry) => entry._tag === "Killed" && entry.because === "scenario")],
  ["process: frozen", some((entry) => entry._tag === "Frozen")],
  ["process: drained, its handlers not in time", some((entry) => entry._tag === "Drained" && !entry.complete)],
  ["process: stopped by its budget", some((entry) => entry._tag === "Draining" && entry.because === "budget")],
  ...(["empty", "interrupted"] as const).map(
    (why): Situation => [`pull: ${why}`, some((entry) => entry._tag === "Pulled" && entry.why === why)]
  ),
  ["pull: released", some((entry) => entry._tag === "Ended" && entry.how === "released")],
  ["copy: made smaller", some((entry) => entry._tag === "Stored" && entry.process !== undefined && entry.cut > 0)],
  ["broker: moved a message natively", some((entry) => entry._tag === "Stored" && entry.native)],
  ["broker: forgot a message", some((entry) => entry._tag === "Gone" && entry.why === "forgotten")],
  ["send: failed", some((entry) => entry._tag === "NotSent")],
  ["handler: interrupted", some((entry) => entry._tag === "Ended" && entry.how === "interrupted")],
  ["settlement failed while a handler ran", failedBeside],
  ["redelivery while its handler ran", redeliveredBeside],
  ["redrive met a failure", refusedJob]
]

/** Counts, for each situation, the histories that have it. */
export type Counts = Record<string, number>

/** Adds a history to the counts. */
export const count = (counts: Counts, history: History): void => {
  for (const [name, isIn] of situations) counts[name] = (counts[name] ?? 0) + (isIn(history) ? 1 : 0)
}

/** Returns the situations that were seen in a smaller part of the histories than this, with the part. */
export const missing = (counts: Counts, seeds: number, least: number): ReadonlyArray<readonly [string, number]> =>
  situations.map(([name]) => [name, (counts[name] ?? 0) / seeds] as const).filter(([, part]) => part < least)
