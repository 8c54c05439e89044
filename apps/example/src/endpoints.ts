/** The subscribers of the webhooks: each replies in its own way, and has a specific weakness. Pure. */
import { draw } from "./random.ts"

/** A subscriber's reaction to one request. */
export type Reply =
  | { readonly _tag: "Accept"; readonly status: 200 | 202 | 204 }
  | { readonly _tag: "Fail"; readonly status: 500 | 502 }
  | { readonly _tag: "Busy"; readonly status: 429 | 503; readonly form: "seconds" | "date"; readonly seconds: number }
  /** No reply; the dispatcher's handler timeout ends the request. */
  | { readonly _tag: "Stall" }
  /** No reply; the connection is closed. */
  | { readonly _tag: "HangUp" }
  | { readonly _tag: "Gone"; readonly status: 410 }

interface Endpoint {
  readonly about: string
  /** Its part of the messages, in percent. */
  readonly share: number
  /** How often it shows its weakness, 0 to 1. */
  readonly weakness: number
  readonly weak: (roll: number) => Reply
}

const fail = (roll: number): Reply => ({ _tag: "Fail", status: roll < 0.5 ? 500 : 502 })

const endpoints = {
  ci: { about: "well", share: 34, weakness: 0, weak: fail },
  chat: { about: "500 or 502 now and then", share: 16, weakness: 0.4, weak: fail },
  search: {
    about: "429, Retry-After in seconds",
    share: 12,
    weakness: 0.35,
    weak: () => ({ _tag: "Busy", status: 429, form: "seconds", seconds: 1 })
  },
  crm: {
    about: "503, Retry-After as an HTTP date",
    share: 12,
    weakness: 0.35,
    weak: (roll) => ({ _tag: "Busy", status: 503, form: "date", seconds: roll < 0.5 ? 1 : 2 })
  },
  // Rarely, because each time keeps one of the handlers busy until its timeout.
  reports: { about: "no answer now and then", share: 8, weakness: 0.04, weak: () => ({ _tag: "Stall" }) },
  gateway: { about: "hangs up now and then", share: 8, weakness: 0.4, weak: () => ({ _tag: "HangUp" }) },
  billing: { about: "down", share: 6, weakness: 1, weak: (roll) => (roll < 0.5 ? fail(roll) : { _tag: "HangUp" }) },
  moved: { about: "410 forever", share: 4, weakness: 1, weak: () => ({ _tag: "Gone", status: 410 }) }
} as const satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof endpoints

export const names = Object.keys(endpoints) as ReadonlyArray<EndpointName> // the keys of the object above

export const isEndpoint = (name: string): name is EndpointName => Object.hasOwn(endpoints, name)

export const about = (name: EndpointName): string => endpoints[name].about

/** The endpoint that subscribed to a message. */
export const subscriberOf = (seed: number, id: string): EndpointName => {
  let left = draw(seed, "subscriber", id) * 100
  return names.find((name) => (left -= endpoints[name].share) < 0) ?? "ci"
}

const accept = (roll: number): Reply => ({ _tag: "Accept", status: roll < 0.6 ? 200 : roll < 0.8 ? 202 : 204 })

/** An endpoint's reply to one attempt of a message: always the same for the same seed. */
export const replyOf = (seed: number, name: EndpointName, id: string, attempt: number, healed: boolean): Reply => {
  const endpoint: Endpoint = endpoints[name]
  const roll = draw(seed, "kind", id, attempt)
  const weak = !healed && draw(seed, "weak", id, attempt) < endpoint.weakness
  return weak ? endpoint.weak(roll) : accept(roll)
}

/** Milliseconds until an endpoint replies. */
export const latencyOf = (seed: number, id: string, attempt: number): number =>
  Math.round(5 + 20 * draw(seed, "latency", id, attempt))
