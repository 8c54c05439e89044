/**
 * Draws a plan as a diagram. Each object has its routes, and each route a lane on the right to its target. All lines are
 * horizontal or vertical and all positions relative, so the diagram fits every screen.
 */
import { RetryPolicy } from "@requeue/core"
import { Plan } from "@requeue/core/port"
import { html, type Html, type Part } from "../html.ts"
import { percent } from "./axis.ts"

/** The width of texts and boxes in percent; lanes are to the right. */
const width = 74

/** The largest number of objects and routes in the diagram. The table has all of them. */
const most = 60

/** A route out of an object; `to` is `undefined` where messages end. */
interface Way {
  readonly label: string
  readonly to: string | undefined
}

interface Node {
  readonly name: string
  readonly kind: string
  readonly state: Plan.State | undefined
  readonly ways: ReadonlyArray<Way>
}

/** Returns the object that consumers read: the target of the queue's unconditional route, or the queue itself. */
const consumed = ({ flows, objects, queue }: Plan.Plan): string => {
  const first = flows[0]?.from ?? objects.at(-1)?.name ?? queue
  return flows.find(({ from, label }) => from === first && label === "")?.to ?? first
}

/** Returns the routes on which messages end at the consumer. */
const endings = ({ queue }: Plan.Plan, retry: RetryPolicy.RetryPolicy): ReadonlyArray<Way> => {
  const isDiscarding = RetryPolicy.deadLetterQueues(retry, queue).length === 0
  return [
    { label: "acknowledged: gone", to: undefined },
    ...(isDiscarding ? [{ label: "discarded: no dead letter is kept", to: undefined }] : [])
  ]
}

/** Returns the objects in the order of messages. Objects without an incoming route come first. */
const ordered = (plan: Plan.Plan): ReadonlyArray<string> => {
  const names = [...new Set(plan.flows.flatMap(({ from, to }) => [from, to]))]
  const start = plan.flows[0]?.from ?? consumed(plan)
  const found = new Set([start])
  for (const name of found) for (const { from, to } of plan.flows) if (from === name) found.add(to)
  const isEnd = (name: string) => name !== start && !plan.flows.some(({ from }) => from === name)
  const all = [...found, ...names.filter((name) => !found.has(name))]
  return [...all.filter((name) => !isEnd(name)), ...all.filter(isEnd)]
}

/** Returns the nodes of a plan. `objects` have their states if the broker was asked. */
export const nodesOf = (
  plan: Plan.Plan,
  objects: ReadonlyArray<Plan.Shown>,
  retry: RetryPolicy.RetryPolicy
): ReadonlyArray<Node> => {
  const known = Plan.grouped(objects)
  const place = consumed(plan)
  return ordered(plan).map((name) => {
    const same = known.filter((object) => object.name === name)
    const states = same.flatMap(({ state }) => state ?? [])
    return {
      name,
      kind: [...new Set(same.map(({ details, kind }) => (kind === "group" ? details : kind)))].join(", "),
      state: states.find((state) => state !== "present") ?? states[0],
      ways: [
        ...(name === place ? endings(plan, retry) : []),
        ...plan.flows.filter(({ from }) => from === name).map(({ label, to }) => ({ label, to }))
      ]
    }
  })
}

const box = { height: 38, way: 20, gap: 10 }

const stateOf = (state: Plan.State | undefined): Part =>
  (state === "missing" || state === "different") && html` <tspan class="alarm">${state}</tspan>`

/** Returns the nodes and their routes with their heights in the diagram. */
const laidOut = (nodes: ReadonlyArray<Node>) => {
  let y = 1
  return nodes.map((node) => {
    const top = y
    y += box.height + node.ways.length * box.way + box.gap
    return { node, top, ways: node.ways.map((way, index) => ({ way, y: top + box.height + (index + 0.5) * box.way })) }
  })
}

/** Returns the nodes that fit into the diagram. */
const fitting = (nodes: ReadonlyArray<Node>): ReadonlyArray<Node> => {
  let lines = 0
  return nodes.filter(({ ways }) => (lines += 1 + ways.length) <= most)
}

const wordsOf = ({ label, to }: Way): string => (to === undefined ? label : `${label === "" ? "then" : label} → ${to}`)

/** Renders the diagram of a plan. */
export const diagram = (plan: Plan.Plan, all: ReadonlyArray<Node>): Html => {
  const nodes = fitting(all)
  const rows = laidOut(nodes)
  const topOf = new Map(rows.map(({ node, top }) => [node.name, top]))
  const targets = nodes
    .map(({ name }) => name)
    .filter((name) => nodes.some(({ ways }) => ways.some(({ to }) => to === name)))
  const laneOf = (name: string): number =>
    percent(width + 3 + ((97 - width) * (targets.indexOf(name) + 0.5)) / targets.length)
  const isEnd = (name: string) => nodes.find((node) => node.name === name)?.ways.length === 0
  const lines = rows.flatMap(({ ways }) =>
    ways.flatMap(({ way: { to }, y }) => {
      const top = to === undefined ? undefined : topOf.get(to)
      return to === undefined || top === undefined ? [] : [{ to, y, target: top + box.height / 2 }]
    })
  )
  const last = rows.at(-1)
  const height = last === undefined ? 0 : last.top + box.height + last.ways.length * box.way + 2
  return html`<svg
    class="diagram"
    role="img"
    aria-label="Routes of messages of ${plan.queue}"
    width="100%"
    height="${height}"
  >
    ${lines.map(({ target, to, y }) => {
      const lane = laneOf(to)
      const kind = isEnd(to) ? "way given" : "way"
      return html`<line class="${kind}" x1="${width}%" x2="${lane}%" y1="${y}" y2="${y}" /><line
          class="${kind}"
          x1="${lane}%"
          x2="${lane}%"
          y1="${y}"
          y2="${target}"
        /><line class="${kind}" x1="${lane}%" x2="${width}%" y1="${target}" y2="${target}" /><svg
          x="${width}%"
          y="${target - 5}"
          width="8"
          height="10"
        >
          <path class="head" d="M1 5 8 1v8z" />
        </svg>`
    })}
    ${rows.map(
      ({ node: { kind, name, state }, top, ways }) =>
        html`<rect class="box" x="0.2%" width="${width - 0.2}%" y="${top}" height="${box.height}" rx="6" /><svg
            x="0"
            y="${top}"
            width="${width}%"
            height="${box.height + ways.length * box.way}"
          >
            <title>${name}</title>
            <text class="mono" x="10" y="16">${name}${stateOf(state)}</text>
            <text class="tick" x="10" y="31">${kind}</text>
            ${ways.map(
              ({ way }, index) => html`<text x="18" y="${box.height + index * box.way + 14}">${wordsOf(way)}</text>`
            )}
          </svg>`
    )}
  </svg>`
}

/** Renders the plan as a table. */
export const table = ({ flows }: Plan.Plan): Part =>
  flows.length > 0 &&
  html`<details class="table">
    <summary>As a table</summary>
    <table class="panel">
      <thead>
        <tr>
          <th scope="col">from</th>
          <th scope="col">when</th>
          <th scope="col">to</th>
        </tr>
      </thead>
      <tbody>
        ${flows.map(
          ({ from, label, to }) =>
            html`<tr>
              <th scope="row" class="wrap">${from}</th>
              <td class="wrap" data-label="when">${label === "" ? "always" : label}</td>
              <td class="wrap" data-label="to">${to}</td>
            </tr>`
        )}
      </tbody>
    </table>
  </details>`
