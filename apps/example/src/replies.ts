/** The latest replies of each subscriber: one mark per request, the newest on the right. */
import { about, type Reply, type EndpointName, names } from "./endpoints.ts"
import type { Visit } from "./receiver.ts"
import type { Paint } from "./screen.ts"

const marks: Readonly<Record<Reply["_tag"], readonly [Parameters<Paint>[0], string]>> = {
  Accept: ["green", "•"],
  Fail: ["red", "5"],
  Busy: ["yellow", "R"],
  Stall: ["magenta", "s"],
  HangUp: ["red", "x"],
  Gone: ["red", "G"]
}

export const legend = "• 2xx   5 500/502   R Retry-After   s no answer in time   x hung up   G 410 Gone"

const width = 32

/** The number of recent visits to show: the rarest subscriber has 1 of 25. */
const window = 1500

export const table = (visits: ReadonlyArray<Visit>, paint: Paint): ReadonlyArray<string> => {
  const recent = new Map<EndpointName, Array<Reply["_tag"]>>(names.map((name) => [name, []]))
  for (let i = visits.length - 1; i >= Math.max(0, visits.length - window); i--) {
    const answers = recent.get(visits[i]!.endpoint)!
    if (answers.length < width) answers.unshift(visits[i]!.answer)
  }
  return [...recent].map(([name, answers]) => {
    const strip = answers.map((answer) => paint(...marks[answer])).join("") + " ".repeat(width - answers.length)
    return `  ${name.padEnd(8)} ${strip}  ${paint("dim", about(name))}`
  })
}
