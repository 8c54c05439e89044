/** The report of a run, as text. */
import type { Books } from "./books.ts"
import { names } from "./endpoints.ts"
import { legend } from "./replies.ts"
import { number } from "./progress.ts"
import { isSound, type Report } from "./report.ts"
import type { Options } from "./options.ts"
import type { Place } from "./place.ts"
import { policy } from "./policy.ts"
import type { Paint } from "./screen.ts"

/** The text before a run. */
export const intro = (
  { broker, count, outbox, seed }: Options,
  { name }: Place,
  schedule: string,
  paint: Paint
): string =>
  [
    `${paint("bold", "Requeue: a webhook dispatcher")} on the ${broker} broker (${name}), seed ${seed}${outbox ? ", through an outbox" : ""}`,
    `${number(count)} GitHub webhooks for ${names.length} subscribers, most of which fail`,
    paint("dim", schedule),
    paint("dim", legend),
    ""
  ].join("\n")

/** The text before a run that continues a killed one. */
export const continuing = ({ delivered, published }: NonNullable<Report["continues"]>): string =>
  `Continues a run that was killed: ${number(published)} messages were published, and ${number(delivered)} delivered\n`

const row = (label: string, value: string, note = ""): string =>
  `  ${label.padEnd(18)}${value.padStart(8)}   ${note}`.trimEnd()

const good = (isGood: boolean, text: string, paint: Paint): string => paint(isGood ? "green" : "red", text.padStart(8))

const books = (title: string, entries: Books, { outbox }: Report, paint: Paint): ReadonlyArray<string> => {
  const { balanced, missing } = entries
  const [published, delivered] = [number(entries.published), number(entries.delivered)]
  const [deadLettered, queued] = [number(entries.deadLettered), number(entries.queued)]
  const fault = missing > 0 ? `${number(missing)} lost` : `${number(-missing)} in two places`
  return [
    paint("bold", title),
    row(
      "published",
      published,
      outbox ? "in committed transactions of the database" : "sends that the broker confirmed"
    ),
    row("delivered", delivered, "distinct ids that the receiver answered with 2xx"),
    row("dead-lettered", deadLettered, "in webhooks.dlq, counted by the broker"),
    row("still queued", queued, "in webhooks, counted by the broker"),
    ...(entries.unconfirmed === 0
      ? []
      : [
          row(
            "unconfirmed",
            number(entries.unconfirmed),
            "of these: accepted, but interrupted before the answer arrived"
          )
        ]),
    row(
      "balanced",
      good(balanced, balanced ? "yes" : "NO", paint),
      balanced ? `${published} = ${delivered} + ${deadLettered} + ${queued}` : fault
    )
  ]
}

const barWidth = 30

const attempts = ({ attempts: byAttempts, timedOut }: Report, paint: Paint): ReadonlyArray<string> => {
  const entries = Object.entries(byAttempts)
  const most = Math.max(1, ...entries.map(([, { deadLettered, delivered }]) => delivered + deadLettered))
  const bar = (count: number): string => "█".repeat(Math.ceil((count / most) * barWidth))
  return [
    paint("bold", "Attempts          delivered   dead-lettered"),
    ...entries.map(([attempt, { deadLettered, delivered }]) => {
      const bars = paint("green", bar(delivered)) + paint("red", bar(deadLettered))
      return `  ${attempt.padEnd(17)}${number(delivered).padStart(8)}${number(deadLettered).padStart(16)}   ${bars}`
    }),
    paint("dim", `  ${number(timedOut)} handler runs were ended because their time was up: ${policy.handlerTimeout}`)
  ]
}

const deadLetters = ({ causes, deadLettersByReason }: Report, paint: Paint): ReadonlyArray<string> => [
  paint("bold", "Dead letters, by reason and last error"),
  ...Object.entries(deadLettersByReason).flatMap(([reason, count]) => [
    row(reason, number(count)),
    ...causes
      .filter((cause) => cause.reason === reason)
      .map((cause) => paint("dim", row("", number(cause.count), cause.error)))
  ])
]

const punctuality = (
  { duplicates, early, lateness, measured, retried }: Report,
  paint: Paint
): ReadonlyArray<string> => [
  paint("bold", "Requested delay against actual delay, timed at the receiver"),
  row("retries", number(retried), `${number(measured)} of them arrived and were timed`),
  row("early", good(early === 0, number(early), paint), "before they were due: must be 0"),
  row("late", `${lateness.median} ms`, `median; min ${lateness.min}, p99 ${lateness.p99}, max ${lateness.max} ms`),
  row("duplicates", number(duplicates), "2xx answers for an id that had one already")
]

/** The fate of messages that are still queued at the end. */
const fates: Readonly<Record<Place["keeps"], string>> = {
  nothing: "are gone with this process: the memory broker keeps nothing",
  "until the end":
    "are kept by the broker, which was started for this run and ends with it; --url names one that stays",
  "for good": "are kept by the broker: they wait there for a consumer"
}

const stop = ({ keeps, queued, redrive, stopped }: Report, paint: Paint): ReadonlyArray<string> => {
  if (stopped === null) return []
  const { by, complete, drainMs, interrupted } = stopped
  const left = redrive?.queued ?? queued
  const end = complete ? "every handler ended in time" : `${number(interrupted)} handlers were interrupted`
  return [
    "",
    paint("bold", by === "stall" ? "Stopped: nothing moved any more" : `Stopped by ${by}`),
    `  drained in ${(drainMs / 1000).toFixed(1)} s; ${end}`,
    ...(left > 0 ? [`  the ${number(left)} messages still queued ${fates[keeps]}`] : [])
  ]
}

/** The text after the first part of a run, before the redrive. */
export const summary = (report: Report, paint: Paint): string =>
  [
    ["", ...books("Books", report, report, paint)],
    attempts(report, paint),
    ...(report.deadLettered > 0 ? [deadLetters(report, paint)] : []),
    punctuality(report, paint)
  ]
    .map((section) => section.join("\n"))
    .join("\n\n")

/** The text before the redrive. */
export const redriving = (count: number, paint: Paint): string =>
  `\n${paint("bold", "The subscribers have recovered")}: ${number(count)} dead letters are redriven\n`

/** The text if dead letters wait for an operator's redrive. */
export const waiting = (count: number, config: string, paint: Paint): string =>
  [
    "",
    `${paint("bold", "The subscribers have recovered")}: ${number(count)} dead letters wait for you. In another terminal, at the root of the repository:`,
    "",
    `  npm run requeue -- console --config ${config}`,
    "",
    "Ctrl-C ends this and prints the books.",
    ""
  ].join("\n")

/** The text at the end: the books after the redrive, and the verdict. */
export const epilogue = (report: Report, paint: Paint): string => {
  const { redrive } = report
  const verdict = isSound(report)
    ? paint("green", "Every message is accounted for, and none was early.")
    : paint("red", "Something is wrong: see above.")
  return [
    ...(redrive === null ? [] : ["", ...books("Books after the redrive", redrive, report, paint)]),
    ...stop(report, paint),
    "",
    `${verdict} ${(report.elapsedMs / 1000).toFixed(1)} s`
  ].join("\n")
}
