/** The schedule of a policy as a plot and as a table. */
import { Delay, type RetryPolicy } from "@requeue/core"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import * as Axis from "./axis.ts"

/** The sides of the plot in percent; the numbers of attempts are on its left. */
const sides = [7, 98] as const

/** An attempt, with the shortest and the longest time from the first attempt until it. */
interface Attempt {
  readonly number: number
  readonly from: number
  readonly to: number
}

const attemptsOf = (schedule: RetryPolicy.Description["schedule"]): ReadonlyArray<Attempt> => [
  { number: 1, from: 0, to: 0 },
  ...schedule.map(({ attempt, elapsed: [from, to] }) => ({ number: attempt + 1, from, to }))
]

/** Describes what follows after the listed attempts. */
const endOf = ({ schedule, worstCase }: RetryPolicy.Description, { maxAge, maxAttempts }: RetryPolicy.RetryPolicy) => {
  const listed = schedule.length + 1
  const isAll = listed >= maxAttempts || (schedule.at(-1)?.elapsed[1] ?? 0) >= maxAge || schedule.length < 100
  const { elapsed: [soonest, latest] = [0, 0] } = schedule.at(-1) ?? {}
  if (isAll) return soonest === latest ? "dead-lettered" : `dead-lettered after ${Delay.format(latest)} at the latest`
  if (worstCase === Number.POSITIVE_INFINITY) return "and so on, without end"
  const more = Number.isFinite(maxAttempts) ? `${Format.count(maxAttempts - listed)} more` : "so on"
  return `and ${more}; dead-lettered after ${Delay.format(worstCase)} at the latest`
}

const band = ({ from, number, to }: Attempt, before: Attempt | undefined, axis: Axis.Axis, step: number): Html => {
  const y = (number - 1) * step
  const height = Axis.percent(Math.max(1.4, step - 3))
  const [left, right] = [axis.at(from), axis.at(to)]
  const since = before === undefined ? left : axis.at((before.from + before.to) / 2)
  const middle = axis.at((from + to) / 2)
  const center = Axis.percent(y + step / 2)
  const name = `attempt ${number}: ${from === to ? Delay.format(to) : `${Delay.format(from)} to ${Delay.format(to)}`}`
  return html`<g
    ><title>${name}</title><line class="wait" x1="${since}%" x2="${middle}%" y1="${center}" y2="${center}" />${right >
      left &&
    html`<rect
      class="band"
      x="${left}%"
      width="${Axis.percent(right - left)}%"
      y="${Axis.percent(y + (step - height) / 2)}"
      height="${height}"
    />`}<rect
      class="mark"
      x="${Axis.percent(middle - 0.4)}%"
      width="0.8%"
      y="${Axis.percent(y + (step - height) / 2)}"
      height="${height}"
  /></g>`
}

/** Renders the numbers of attempts, as far as they fit. */
const numbers = (attempts: ReadonlyArray<Attempt>, step: number): ReadonlyArray<Html> => {
  const each = Math.ceil(13 / step)
  return attempts
    .filter(({ number }) => number === 1 || number % each === 0)
    .filter(({ number }, index) => index !== 1 || (number - 1) * step >= 13)
    .map(
      ({ number }) =>
        html`<text
          class="tick"
          x="${sides[0] - 1.5}%"
          y="${Axis.percent(Math.max(9, (number - 0.5) * step + 4))}"
          text-anchor="end"
        >
          ${number}
        </text>`
    )
}

/** Renders the plot: one line for each attempt, with time from left to right. */
export const plot = (description: RetryPolicy.Description, policy: RetryPolicy.RetryPolicy): Html => {
  const { schedule, text } = description
  const attempts = attemptsOf(schedule)
  const last = attempts.at(-1)!
  const first = attempts.find(({ to }) => to > 0)
  const axis = Axis.time({ first: first === undefined ? 0 : (first.from + first.to) / 2, last: last.to }, sides)
  const step = Axis.percent(Math.max(2.4, Math.min(18, 200 / attempts.length)))
  const end = axis.at((last.from + last.to) / 2)
  const height = Axis.percent(step * attempts.length + 20)
  const isRight = end > 50
  return html`<svg
    class="plot"
    role="img"
    aria-label="${text}"
    width="100%"
    height="${Axis.percent(height + Axis.room)}"
  >
    ${Axis.drawn(axis, height)} ${numbers(attempts, step)}
    ${attempts.map((attempt, index) => band(attempt, attempts[index - 1], axis, step))}
    <line class="end" x1="${end}%" x2="${end}%" y1="${Axis.percent(height - 20)}" y2="${Axis.percent(height - 4)}" />
    <text
      x="${Axis.percent(isRight ? end - 1.2 : end + 1.2)}%"
      y="${Axis.percent(height - 6)}"
      text-anchor="${isRight ? "end" : "start"}"
    >
      ${endOf(description, policy)}
    </text>
  </svg>`
}

const span = ([low, high]: readonly [number, number]): string =>
  low === high ? Delay.format(high) : `${Delay.format(low)} to ${Delay.format(high)}`

/** Renders the schedule as a table. */
export const table = ({ schedule }: RetryPolicy.Description): Part =>
  schedule.length > 0 &&
  html`<details class="table">
    <summary>As a table</summary>
    <table class="panel">
      <thead>
        <tr>
          <th scope="col">attempt</th>
          <th scope="col" class="n">after the one before</th>
          <th scope="col" class="n">since the first</th>
        </tr>
      </thead>
      <tbody>
        ${schedule.map(
          ({ attempt, delay, elapsed }) =>
            html`<tr>
              <th scope="row">${attempt + 1}</th>
              <td class="n" data-label="after">${span(delay)}</td>
              <td class="n" data-label="since the first">${span(elapsed)}</td>
            </tr>`
        )}
      </tbody>
    </table>
  </details>`

/** Describes the bands and marks of the plot. */
export const legend = ({ schedule }: RetryPolicy.Description): string => {
  const isSpread = schedule.some(({ delay: [low, high] }) => low < high)
  return `Each line is an attempt. ${isSpread ? "A band is the time in which it begins, a mark the middle of that time" : "A mark is the time at which it begins"}, without handler runs and waiting in the queue.`
}
