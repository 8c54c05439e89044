/** The state of a run as text: many lines for a terminal, one line for a log. */
import type { Feed } from "./feed.ts"
import type { Ledger } from "./ledger.ts"
import type { Paint } from "./screen.ts"
import { table as replies } from "./replies.ts"
import type { Visit } from "./receiver.ts"

export interface Snapshot {
  readonly feed: Feed
  readonly ledger: Ledger
  readonly visits: ReadonlyArray<Visit>
  /** Milliseconds since the run began. */
  readonly elapsed: number
}

export const number = (value: number): string => value.toLocaleString("en-US")

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

const figures = ({ elapsed, feed, ledger }: Snapshot) => {
  const inFlight = ledger.count("in flight")
  const retrying = ledger.count("retrying")
  const delivered = ledger.count("delivered")
  const dead = ledger.count("dead")
  const ended = ledger.ended()
  return {
    queued: Math.max(0, feed.count() - ended - inFlight - retrying),
    inFlight,
    delivered,
    retrying,
    dead,
    share: feed.total === 0 ? 1 : ended / feed.total,
    rate: Math.round((delivered * 1000) / Math.max(elapsed, 1))
  }
}

const barWidth = 44

const bar = (share: number, paint: Paint): string => {
  const full = Math.floor(share * barWidth)
  return paint("green", "━".repeat(full)) + paint("dim", "─".repeat(barWidth - full))
}

/** Formats the state for a terminal of 80 columns. */
export const lines = (snapshot: Snapshot, paint: Paint): ReadonlyArray<string> => {
  const { dead, delivered, inFlight, queued, rate, retrying, share } = figures(snapshot)
  const state = (name: string, color: Parameters<Paint>[0], count: number, note = ""): string =>
    `  ${name.padEnd(14)}${paint(color, number(count).padStart(7))}${note === "" ? "" : `   ${paint("dim", note)}`}`
  return [
    `  ${bar(share, paint)} ${String(Math.floor(share * 100)).padStart(3)} %   ${seconds(snapshot.elapsed)}`,
    "",
    state("queued", "cyan", queued, `${number(snapshot.feed.count())} of ${number(snapshot.feed.total)} have come in`),
    state("in flight", "blue", inFlight),
    state("delivered", "green", delivered, `${number(rate)} a second`),
    state("retrying", "yellow", retrying, `${number(snapshot.ledger.retries())} retries so far`),
    state("dead-lettered", "red", dead),
    "",
    ...replies(snapshot.visits, paint),
    "",
    `  ${paint("dim", snapshot.ledger.latest().slice(0, 76))}`
  ]
}

/** Formats the state for a log. */
export const line = (snapshot: Snapshot): string => {
  const { dead, delivered, inFlight, queued, rate, retrying, share } = figures(snapshot)
  return [
    `${seconds(snapshot.elapsed).padStart(6)} ${String(Math.floor(share * 100)).padStart(3)} %`,
    `queued ${queued}`,
    `in flight ${inFlight}`,
    `delivered ${delivered}`,
    `retrying ${retrying}`,
    `dead-lettered ${dead}`,
    `${rate}/s`
  ].join("  ")
}
