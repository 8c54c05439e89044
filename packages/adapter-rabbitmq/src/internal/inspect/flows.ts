/** The paths of messages through a plan, for a diagram. Pure. */
import { type Adapter, Delay, Plan, RetryPolicy } from "@requeue/core/port"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Names from "../names.ts"
import type { NativeObject } from "../declare/objects.ts"

/** Whether an object belongs to the levels, which all queues share. A diagram shows them as one node. */
const isLevel = (name: string, settings: Settings): boolean => name.startsWith(Names.levels(settings))

/** The name of all levels together. */
const allLevels = (settings: Settings): string => `${Names.levels(settings)}*`

/** The shared delay that an object belongs to: the levels or a rung; `undefined` for objects of one queue. */
export const groupOf = (name: string, settings: Settings): string | undefined => {
  if (isLevel(name, settings)) return allLevels(settings)
  return name.startsWith(Names.rungs(settings)) ? name : undefined
}

const station = (name: string, settings: Settings): string => (isLevel(name, settings) ? allLevels(settings) : name)

/** Every delay of the policy and of the plan's queues, in milliseconds, shortest first. */
const delays = (
  { objects }: RabbitMqPlan.Plan,
  { retry }: Adapter.PlanRequest,
  settings: Settings
): ReadonlyArray<number> => {
  const planned = RetryPolicy.schedule(retry).flatMap(({ delay }) => delay)
  const kept = objects.flatMap((object) => {
    const isOwn = object._tag === "Queue" && !isLevel(object.name, settings)
    const ttl = isOwn ? object.arguments["x-message-ttl"] : undefined
    return typeof ttl === "number" ? [ttl] : []
  })
  return [...new Set([...planned, ...kept])].filter((ms) => ms > 0).toSorted((a, b) => a - b)
}

const list = (times: ReadonlyArray<number>): string =>
  `${times.slice(0, 4).map(Delay.format).join(", ")}${times.length > 4 ? ", …" : ""}`

/** The flows from the queue into its delays. */
const entries = (
  plan: RabbitMqPlan.Plan,
  request: Adapter.PlanRequest,
  settings: Settings
): ReadonlyArray<Plan.Flow> => {
  if (plan.native !== undefined) return Plan.retries(request.queue, request.retry)
  const byStation = Map.groupBy(delays(plan, request, settings), (ms) => {
    const { exchange, routingKey } = plan.route(ms)
    return station(exchange === "" ? routingKey : exchange, settings)
  })
  const flows = [...byStation].map(([to, times]) => ({ from: request.queue, to, label: `retry after ${list(times)}` }))
  const levels = [...plan.objects, ...plan.onDemand].find(
    (object) => object._tag === "Queue" && isLevel(object.name, settings)
  )
  if (levels === undefined || byStation.has(allLevels(settings))) return flows
  return [...flows, { from: request.queue, to: allLevels(settings), label: "any other delay" }]
}

/** The flow out of an object. */
const onward = (object: NativeObject, request: Adapter.PlanRequest): ReadonlyArray<Plan.Flow> => {
  switch (object._tag) {
    case "Exchange": {
      const to = object.arguments["alternate-exchange"]
      return typeof to === "string" ? [{ from: object.name, to, label: "nowhere to go" }] : []
    }
    case "Queue": {
      const {
        "x-dead-letter-exchange": exchange,
        "x-dead-letter-routing-key": key,
        "x-message-ttl": ttl
      } = object.arguments
      // The default exchange leads to the queue that the key names.
      const to = exchange === "" ? key : exchange
      if (typeof to !== "string" || RetryPolicy.deadLetterQueues(request.retry, request.queue).includes(object.name))
        return []
      const own = object.name === request.queue
      const label = own
        ? "dead-lettered by the server"
        : typeof ttl === "number"
          ? `after ${Delay.format(ttl)}`
          : "when due"
      return [{ from: object.name, to, label }]
    }
    case "Binding":
      return object.source === object.queue ? [] : [{ from: object.source, to: object.queue, label: object.key }]
  }
}

/** All flows of a plan: from the queue into its delays and dead letters, and from there on. */
export const flows = (
  plan: RabbitMqPlan.Plan,
  request: Adapter.PlanRequest,
  settings: Settings
): ReadonlyArray<Plan.Flow> => {
  const handed = [...plan.objects, ...plan.onDemand]
    .flatMap((object) => onward(object, request))
    .map(({ from, label, to }) => ({
      from: station(from, settings),
      to: station(to, settings),
      label: isLevel(from, settings) ? "when due" : label === to ? "" : label
    }))
    .filter(({ from, to }) => from !== to)
  const all = [...entries(plan, request, settings), ...Plan.deadLetters(request.queue, request.retry), ...handed]
  return [...new Map(all.map((flow) => [JSON.stringify(flow), flow])).values()]
}
