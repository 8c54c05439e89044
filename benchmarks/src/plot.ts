/** A case as an SVG picture for the documentation: one bar per contender, with the range of its rounds. Pure. */
import type { CaseResult, Line } from "./results.ts"

const size = { width: 720, left: 230, right: 90, bar: 16, gap: 10, top: 44, bottom: 16 }

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const isOurs = ({ name }: Line): boolean => name.startsWith("requeue")

/** CPU per message against the baseline; less is better. */
export const cpu = (result: CaseResult): string => {
  const { bar, bottom, gap, left, right, top, width } = size
  const height = top + result.lines.length * (bar + gap) + bottom
  const most = Math.max(...result.lines.map(({ cpuRatio }) => cpuRatio.max))
  const x = (ratio: number): number => Math.round(left + (ratio / most) * (width - left - right))
  const rows = result.lines.flatMap((line, n) => {
    const y = top + n * (bar + gap)
    const middle = y + bar / 2
    const { max, median, min } = line.cpuRatio
    return [
      `<text x="${left - 8}" y="${middle + 4}" text-anchor="end">${escaped(line.name)}</text>`,
      `<rect x="${left}" y="${y}" width="${x(median) - left}" height="${bar}" fill="${isOurs(line) ? "#2563eb" : "#94a3b8"}"/>`,
      `<path d="M${x(min)} ${middle}H${x(max)}" stroke="#111827"/>`,
      `<text x="${x(max) + 6}" y="${middle + 4}">${median.toFixed(2)}</text>`
    ]
  })
  const title = escaped(`${result.suite}: ${result.case}`)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    `<text x="8" y="18" font-size="14">${title}</text>`,
    `<text x="8" y="34" fill="#475569">CPU of the client per message, against ${escaped(result.lines[0]!.name)}; less is better</text>`,
    `<path d="M${x(1)} ${top - 4}V${height - bottom}" stroke="#475569" stroke-dasharray="3 3"/>`,
    ...rows,
    "</svg>",
    ""
  ].join("\n")
}
