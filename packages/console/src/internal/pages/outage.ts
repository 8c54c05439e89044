/** A simulated outage: its form, its numbers, and two plots on one time axis. */
import { Delay } from "@requeue/core"
import type { Outage, OutageReport } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { queryOf, type Visit } from "../visit.ts"
import type { Result } from "../work/outage.ts"
import * as Axis from "./axis.ts"
import { alarm, facts } from "./parts.ts"

/** The fields of the form. Times are in milliseconds, the share is from 0 to 1. */
export interface Asked extends Pick<Outage.Question, "outage" | "rate" | "handlerTime"> {
  readonly share: number
  readonly concurrency: number | undefined
  /** The form of consumer backoff to simulate; `undefined` for the configured one. */
  readonly consumerBackoff: Outage.Question["consumerBackoff"]
}

/** The fields of the form before the operator changes them. */
export const usual: Asked = {
  outage: 15 * 60_000,
  rate: 10,
  share: 1,
  handlerTime: 100,
  concurrency: undefined,
  consumerBackoff: undefined
}

const field = (name: string, label: string, value: number | undefined, hint = ""): Html => html`<label
  >${label}
  <input name="${name}" inputmode="decimal" size="7" autocomplete="off" value="${value ?? ""}" placeholder="${hint}"
/></label>`

const choices = [
  ["", "as configured"],
  ["off", "off"],
  ["consecutive", "consecutive failures"],
  ["ratio", "ratio of failures"],
  ["nsq", "every failure"]
] as const

/** Renders the form. It changes nothing, so its address can be shared. */
const form = ({ paths }: Visit, place: Place, asked: Asked): Html => {
  const { concurrency, consumerBackoff, handlerTime, outage, rate, share } = asked
  return html`<form method="get" action="${paths.to("queue")}#outage" class="ask">
    ${Object.entries(queryOf(place)).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`
    )}
    ${field("outage", "Minutes", outage / 60_000)} ${field("rate", "Messages a second", rate)}
    ${field("failing", "Failing, %", Axis.percent(100 * share))} ${field("handler", "Handler, ms", handlerTime)}
    ${field("concurrency", "Handlers", concurrency, "default")}
    <label
      >Consumer backoff
      <select name="backoff">
        ${choices.map(
          ([value, text]) =>
            html`<option value="${value}" ${value === (consumerBackoff ?? "") && html` selected`}>${text}</option>`
        )}
      </select></label
    >
    <button>Simulate</button>
  </form>`
}

const digits = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 })
const whole = (n: number): string => Format.count(Math.round(n))

/** Renders the median, and the range of nine in ten rounds. */
const range = ({ high, low, median }: OutageReport.Range, show: (n: number) => string, isAlarming = false): Html =>
  html`<span class="${isAlarming && high > 0 ? "alarm" : "strong"}">${show(median)}</span>${show(low) !== show(high) &&
    html` <span class="soft">${show(low)} to ${show(high)}</span>`}`

/** The largest number of columns of a plot. */
const columns = 150

/** Spreads values over columns. A column of several values has the largest of them. */
const spread = (values: ReadonlyArray<number>): ReadonlyArray<number> => {
  const count = Math.min(columns, values.length)
  return Array.from({ length: count }, (_, column) => {
    const from = Math.floor((column * values.length) / count)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / count))
    return values.slice(from, to).reduce((most, value) => Math.max(most, value), 0)
  })
}

const height = 90

/** The sides of both plots, in percent. */
const sides = [0, 100] as const

/** The outline of columns in a box of 1,000 by 100. */
const outline = (values: ReadonlyArray<number>): string => {
  const shown = spread(values)
  const most = Math.max(...shown, 0) || 1
  const points = shown.flatMap((value, index) => {
    const y = Axis.percent(100 - (96 * value) / most)
    return [
      `L${Axis.percent((1000 * index) / shown.length)} ${y}`,
      `L${Axis.percent((1000 * (index + 1)) / shown.length)} ${y}`
    ]
  })
  return `M0 100${points.join("")}L1000 100z`
}

/** Renders a plot of values over time, with the end of the outage. */
export const area = (
  title: string,
  values: ReadonlyArray<number>,
  { length, total }: { readonly length: number; readonly total: number }
): Html => {
  const axis = Axis.time({ first: 0, last: total }, sides)
  const end = axis.at(length)
  return html`<figure>
    <figcaption>${title}</figcaption>
    <svg class="plot" role="img" aria-label="${title}" width="100%" height="${height + Axis.room}">
      <svg viewBox="0 0 1000 100" preserveAspectRatio="none" width="100%" height="${height}">
        <path class="area" d="${outline(values)}" />
      </svg>
      ${Axis.drawn(axis, height)}
      <line class="end" x1="${end}%" x2="${end}%" y1="0" y2="${height}" />
      <text class="over" x="${end > 70 ? end - 1 : end + 1}%" y="12" text-anchor="${end > 70 ? "end" : "start"}">
        outage ends
      </text>
    </svg>
  </figure>`
}

const ended = ({ cut, recovery, rounds, unrecovered }: OutageReport.OutageReport): Html => {
  if (recovery === null) {
    return cut === rounds
      ? html`<span class="alarm">unknown: the simulation was too large to finish</span>`
      : html`<span class="alarm">never</span>`
  }
  return html`${range(recovery, Delay.format)} <span class="soft">after its end</span>${unrecovered > 0 &&
    html` <span class="alarm">${unrecovered} of ${rounds} never</span>`}`
}

/** Renders the numbers and plots of a report. */
const report = (found: OutageReport.OutageReport): Html => {
  const { backlog, cut, deadLetters, discarded, length, messages, peakBacklog, peakLoad, retries, rounds } = found
  const total = backlog.slice * Math.max(backlog.values.length, backlog.runs.length, 1)
  const loads = backlog.runs.map((runs) => (1000 * runs) / backlog.slice)
  return html`${cut > 0 &&
    alarm(
      "The simulation stopped early.",
      "It has too many events, so only its beginning was simulated. Give a lower rate and multiply the result"
    )}
    ${facts([
      ["messages", range(messages, whole)],
      ["retries", range(retries, whole)],
      ["handler runs a message", range(found.runsPerMessage, digits.format.bind(digits))],
      ["dead letters", range(deadLetters, whole, true)],
      ...(discarded.high > 0 ? [["discarded", range(discarded, whole, true)] as const] : []),
      ["largest backlog", range(peakBacklog, whole)],
      ["largest load", html`${range(peakLoad, digits.format.bind(digits))} <span class="soft">runs a second</span>`],
      ["recovered", ended(found)]
    ])}
    <p class="soft">
      ${rounds === 1
        ? "One outage was simulated"
        : `The medians of ${rounds} simulated outages, and the range of nine in ten`};
      the plots show the first.
    </p>
    <div class="two">
      ${area("Load on the failing dependency: handler runs a second", loads, { length, total })}
      ${area("Backlog: messages that are ready, delayed or in a handler", backlog.values, { length, total })}
    </div>`
}

/** Renders the section of a queue's page. */
export const section = (visit: Visit, place: Place, asked: Asked, answer: Result | undefined): Html => {
  const found: Part =
    answer !== undefined &&
    ("field" in answer ? alarm("The outage was not simulated.", `${answer.detail}. ${answer.remedy}.`) : report(answer))
  return html`<section class="part" id="outage" aria-labelledby="outage-title">
    <h2 id="outage-title">Simulate an outage</h2>
    <p class="soft">
      A dependency of the handler is down while messages keep arriving. The simulation sends no message and asks no
      broker.
    </p>
    ${form(visit, place, asked)} ${found}
  </section>`
}
