/** The page of events, and its stream. */
import * as Effect from "effect/Effect"
import { chosen, type Choice, events, kindOf, placeOf, table } from "../pages/events.ts"
import type { Html } from "../html.ts"
import type { Dependencies, Route } from "./route.ts"

/** The smallest number of milliseconds between two tables of a stream. */
const interval = 1000

/** Returns which events of configured queues the fields choose. */
const choiceOf = (fields: URLSearchParams, { connections }: Dependencies): Choice => {
  const of = fields.get("of") ?? ""
  const places = [...connections.values()].flatMap(({ name, queues }) => [
    { broker: name, queue: undefined },
    ...queues.map((queue) => ({ broker: name, queue: queue.name }))
  ])
  const place = places.find(({ broker, queue }) => placeOf(broker, queue) === of)
  const until = /^\d{1,15}$/.exec(fields.get("until") ?? "")
  return {
    broker: place?.broker,
    queue: place?.queue,
    kind: kindOf(fields.get("kind")),
    until: until === null ? undefined : Number(until[0])
  }
}

/** Returns the chosen events as the operator may see them. */
const shownTo = (mayBodies: boolean, { events: all, showEvent }: Dependencies, choice: Choice) =>
  chosen(all.all(), choice).map((told) => showEvent(told, mayBodies))

/** The page of events. */
export const eventsRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.map(dependencies.watch, () => {
      const choice = choiceOf(fields, dependencies)
      return {
        page: events(visit, {
          choice,
          shown: shownTo(visit.may.has("bodies"), dependencies, choice),
          last: dependencies.events.last(),
          isFed: dependencies.events.isFed(),
          brokers: [...dependencies.connections.values()]
        })
      }
    })
}

/** Streams new events, with at most one table a second. */
export const liveEventsRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.map(dependencies.watch, () => {
      const choice = choiceOf(fields, dependencies)
      const mayBodies = visit.may.has("bodies")
      let [body, seq, at]: [Html | undefined, number, number] = [undefined, 0, 0]
      const read = (now: number) => {
        const last = dependencies.events.last()
        if (body === undefined || (last !== seq && now - at >= interval)) {
          body = table(shownTo(mayBodies, dependencies, choice))
          ;[seq, at] = [last, now]
        }
        return { body, isOver: false }
      }
      return { live: { read } }
    })
}
