/** A retry policy's schedule, as a value and as a table with a plot. */
import { Delay, type RetryPolicy } from "@requeue/core"
import type { Service } from "./Output.ts"
import * as Plot from "./Plot.ts"
import * as Table from "./Table.ts"

export const value = ({ handlerRuns, schedule, text, worstCase }: RetryPolicy.Description) => ({
  summary: text,
  schedule: schedule.map(({ attempt, delay, elapsed }) => ({ retry: attempt, delay, elapsed })),
  handlerRuns,
  worstCase
})

const span = ([low, high]: readonly [number, number]): string =>
  low === high ? Delay.format(high) : `${Delay.format(low)} to ${Delay.format(high)}`

/** The largest number of rows to show. After them, a long schedule continues like its end. */
const most = 30
const width = 40

export const text = ({ schedule, text }: RetryPolicy.Description, paint: Service["paint"]): string => {
  if (schedule.length === 0) return text
  const shown = schedule.slice(0, most)
  const longest = Math.max(...shown.map(({ delay }) => delay[1]))
  const rows = shown.map(({ attempt, delay, elapsed }) => [
    String(attempt),
    span(delay),
    span(elapsed),
    longest === 0 ? "" : paint("cyan", Plot.bar(delay[1], longest, width))
  ])
  const more = schedule.length > most ? [`and ${schedule.length - most} more`] : []
  return [text, "", Table.format(["retry", "after", "since the first run", ""], rows), ...more].join("\n")
}
