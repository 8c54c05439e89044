/** Tables: a history for a reader. Time goes downwards; operators, the broker and each process have a column. */
import type { Violation } from "./check/Violation.ts"
import type { Asked, Call, Entry, History } from "./History.ts"
import type { Scenario, Version } from "./Scenario.ts"

/** Characters between the starts of two columns. Sentences may be longer, because each has its own line. */
const width = 22

const millis = (at: number): string => String(Math.round(at * 10) / 10)

const settlement = ({ cut, delay, reason, tag }: Asked): string =>
  [
    tag,
    reason === undefined ? "" : ` as ${reason}`,
    delay > 0 || tag === "Retry" ? ` in ${millis(delay)}` : "",
    cut === 0 ? "" : `, cut ${cut}`
  ].join("")

const call = ({ delay, key, name }: Call): string =>
  `${key === undefined ? "" : `#${key}.`}${name}(${delay === undefined ? "" : delay})`

/** Facts of operators and of the world. */
const ofPeople = (entry: Entry): string | undefined => {
  switch (entry._tag) {
    case "Sending":
      return `sends #${entry.key}${entry.earliest > entry.at ? `, not before ${millis(entry.earliest)}` : ""}`
    case "Sent":
      return `#${entry.key} is confirmed`
    case "NotSent":
      return `#${entry.key} is not sent: ${entry.reason}`
    case "Operates":
      return `${entry.what} begins`
    case "Operated":
      return `${entry.what} ${entry.failed === undefined ? `ends: ${entry.count ?? "done"}` : `fails: ${entry.failed}`}`
    case "Fault":
      return `FAULT ${entry.site}`
    case "Calm":
      return "CALM"
    case "End":
      return entry.because === "rest" ? "END: at rest" : "END: time is over"
    default:
      return undefined
  }
}

const ofBroker = (entry: Entry): string | undefined => {
  switch (entry._tag) {
    case "Stored": {
      const where = entry.queue === "work" ? "" : ` in ${entry.queue}`
      const details = [
        entry.reason === undefined ? "" : ` as ${entry.reason}`,
        entry.due > entry.at ? `, due ${millis(entry.due)}` : "",
        entry.cut === 0 ? "" : `, cut ${entry.cut}`,
        entry.native ? ", natively" : ""
      ]
      return `stores #${entry.key}/${entry.copy}${where}${details.join("")}`
    }
    case "HandedOut":
      return `hands #${entry.key}/${entry.copy} to ${entry.process} as d${entry.delivery}`
    case "Back":
      return `has #${entry.key}/${entry.copy} back, ${entry.why}${entry.due > entry.at ? `, due ${millis(entry.due)}` : ""}`
    case "Committed": {
      const list = (name: string, all: ReadonlyArray<number>) => `${name} ${all.map((each) => `d${each}`).join(" ")}`
      return `commits ${list("acks", entry.acked)}, ${list("rows", entry.rows)}, ${list("sends", entry.sends)}`
    }
    case "Rebooted":
      return "REBOOTS after a power cut"
    case "Gone":
      return `removes #${entry.key}/${entry.copy}, ${entry.why}${entry.delivery === undefined ? "" : ` by d${entry.delivery}`}`
    default:
      return undefined
  }
}

const ofLife = (entry: Entry): string | undefined => {
  switch (entry._tag) {
    case "Started":
      return `${entry.process} starts, version ${entry.version}`
    case "Draining":
      return `${entry.process} drains${entry.because === undefined ? "" : `, because of its ${entry.because}`}`
    case "Drained":
      return `${entry.process} has drained${entry.complete ? "" : ", not all"}`
    case "Killed":
      return `${entry.process} DIES (${entry.because})`
    case "Frozen":
      return `${entry.process} stands still until ${millis(entry.until)}`
    case "Credit":
      return `credit ${entry.limit}`
    case "Reconnected":
      return `connects again${entry.gone.length === 0 ? "" : `, without ${entry.gone.map((each) => `d${each}`).join(" ")}`}`
    case "Told":
      return `reports ${entry.event}${entry.id === undefined ? "" : ` of ${entry.id}`}`
    case "Health":
      return `is ${entry.state}: ${entry.buffered} buffered, ${entry.inProgress} in progress`
    case "Defect":
      return `DEFECT ${entry.detail}`
    default:
      return undefined
  }
}

const ofWork = (entry: Entry): string | undefined => {
  switch (entry._tag) {
    case "Arrived":
      return `gets d${entry.delivery}: #${entry.key}, attempt ${entry.attempts}`
    case "Lapsed":
      return `has lost d${entry.delivery}`
    case "Began":
      return `runs r${entry.run}: ${entry.given.map(({ attempts, key }) => `#${key}, attempt ${attempts}`).join("; ")}`
    case "Pulling":
      return `p${entry.pull} waits for a batch`
    case "Pulled":
      return `p${entry.pull} ends: ${entry.why}`
    case "Called":
      return `r${entry.run} calls ${call(entry.call)}`
    case "Enlisted":
      return `r${entry.run} acks ${entry.deliveries.map((each) => `d${each}`).join(" ")} within${entry.isRefused ? ", refused" : ""}`
    case "Ended":
      return `r${entry.run} ${entry.how === "interrupted" ? "is interrupted" : entry.how}${entry.error === undefined ? "" : ` ${entry.error}`}`
    case "Asked":
      return `d${entry.delivery}: ${settlement(entry.settlement)}?`
    case "Answered":
      return `d${entry.delivery}: ${settlement(entry.settlement)} ${entry.fate ?? "taken"}`
    default:
      return undefined
  }
}

/** The column of a process: its lives share one, under the process's name. */
const columnOf = (life: string): string => life.replace(/(?<=.)\d+$/, "")

const line = (mark: string, at: string, column: number, sentence: string): string =>
  `${mark.padStart(2)} ${at.padStart(10)}  ${" ".repeat(column * width)}${sentence}`.trimEnd()

const sentenceOf = ({ at, delivery, key, law, process, what }: Violation, nth: number): string => {
  const about = [
    `at ${millis(at)} ms`,
    key === undefined ? "" : `#${key}`,
    delivery === undefined ? "" : `d${delivery}`,
    process ?? ""
  ].filter((part) => part !== "")
  return `${nth + 1}. ${law} (${about.join(", ")}): ${what}`
}

const programOf = (version: Version, index: number): string => {
  const {
    backoff,
    batch,
    consumerBackoff,
    deadLetter,
    immediate,
    maxAge,
    maxAttempts,
    maxDeliveries,
    pull,
    rateLimit
  } = version
  const parts = [
    `attempts ${maxAttempts}`,
    immediate === 0 ? "" : `${immediate} retries at once`,
    backoff.length === 0 ? "" : `backoff ${backoff.map(millis).join(" ")}`,
    maxAge === undefined ? "" : `for ${millis(maxAge)}`,
    `deliveries ${maxDeliveries}`,
    deadLetter === undefined ? "no dead letters" : `dead letters to ${deadLetter}`,
    `concurrency ${version.concurrency}`,
    `prefetch ${version.prefetch}`,
    batch === undefined ? "" : `batches of ${batch.size} or ${millis(batch.wait)}`,
    version.each === true ? "one by one" : "",
    pull === undefined ? "" : `pulled by ${pull.loops} for ${millis(pull.wait)} after ${millis(pull.pause)}`,
    rateLimit === undefined ? "" : `${rateLimit.max} runs in ${millis(rateLimit.per)}`,
    `handler timeout ${millis(version.handlerTimeout)}`,
    `drain timeout ${millis(version.drainTimeout)}`,
    consumerBackoff === undefined ? "" : `consumer backoff ${consumerBackoff.multiplier} to ${consumerBackoff.max}`,
    version.promise === true ? "async" : ""
  ]
  return `version ${index}: ${parts.filter((part) => part !== "").join(", ")}`
}

/** The world and the programs of a table. */
const headOf = ({ calmAt, kind, lease, seed, versions }: Scenario): ReadonlyArray<string> => [
  `seed ${seed}, broker ${kind}${lease === 0 ? "" : `, leases of ${millis(lease)}`}, faults until ${millis(calmAt)}`,
  ...versions.map(programOf)
]

/**
 * Formats a history as a table, with its violations. Times are in milliseconds; `#1/2` is copy 2 of message 1, `d3` a delivery,
 * `r4` a handler run. The lines that show a violation have its number. Events and health have a line only if they show a
 * violation. With its scenario, the table begins with the world and the versions of the program.
 */
export const print = (history: History, violations: ReadonlyArray<Violation> = [], scenario?: Scenario): string => {
  const columns = ["operators", "broker"]
  for (const entry of history) {
    if (entry._tag === "Started" && !columns.includes(columnOf(entry.process))) columns.push(columnOf(entry.process))
  }
  const marks = new Map<number, string>()
  violations.forEach(({ entries }, nth) => {
    for (const index of entries) if (!marks.has(index)) marks.set(index, String(nth + 1))
  })

  const header = columns.map((column) => column.padEnd(width)).join("")
  const lines = [...(scenario === undefined ? [] : [...headOf(scenario), ""]), line("", "ms", 0, header)]
  history.forEach((entry, index) => {
    const mark = marks.get(index) ?? ""
    if (mark === "" && (entry._tag === "Told" || entry._tag === "Health")) return
    const at = millis(entry.at)
    const people = ofPeople(entry)
    if (people !== undefined) return void lines.push(line(mark, at, 0, people))
    const broker = ofBroker(entry)
    if (broker !== undefined) return void lines.push(line(mark, at, 1, broker))
    const life = "process" in entry && entry.process !== undefined ? entry.process : ""
    const column = columns.indexOf(columnOf(life))
    const sentence = ofLife(entry) ?? ofWork(entry) ?? entry._tag
    lines.push(line(mark, at, Math.max(0, column), column < 0 ? `${life}: ${sentence}` : sentence))
  })
  return [...lines, ...(violations.length === 0 ? [] : ["", ...violations.map(sentenceOf)])].join("\n")
}
