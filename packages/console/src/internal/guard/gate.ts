/** Checks every request, in this order: host, origin, rate, operator and role, token. */
import * as Effect from "effect/Effect"
import { type Action, actions, type Authorize, type Decision } from "../../Authorization.ts"
import { Refusal } from "../refusal.ts"
import * as ClientAddress from "./clientAddress.ts"
import * as CrossSite from "./crossSite.ts"
import type * as FormToken from "./formToken.ts"
import * as Host from "./host.ts"
import * as RateLimit from "./rateLimit.ts"

/** The sender of a request. */
export interface Client {
  /** The remote address of the request's socket. */
  readonly address: string
}

/** The options of a gate. */
export interface Options {
  /** The hosts that requests may name. Default: the names of this machine. */
  readonly hosts: ReadonlyArray<string> | undefined
  readonly authorize: Authorize
  /** Whether the console has no authentication. If so, only this machine may reach it. */
  readonly isOpen: boolean
  readonly token: FormToken.FormToken
  /** Proxies that are trusted to report the client's address. */
  readonly proxies: ReadonlyArray<string>
}

/** Rate limits: of all requests of a client; of changes, and of wrong credentials, of one operator at one client. */
const limits = { all: [200, 50], acts: [30, 2], failures: [10, 0.2] } as const

const refuse = (
  status: Refusal["status"],
  detail: string,
  remedy: string,
  headers?: Readonly<Record<string, string>>
) => new Refusal({ status, detail, remedy, ...(headers === undefined ? {} : { headers }) })

const tooOften = refuse(429, "too many requests", "Wait a minute", { "retry-after": "60" })

/** Whether the answer of a hook is a decision. This is checked, because a hook may be written in JavaScript. */
const isDecision = (answer: unknown): answer is Decision => {
  const { _tag, operator }: { readonly _tag?: unknown; readonly operator?: unknown } = Object(answer)
  if (_tag === "Unknown") return operator === undefined || typeof operator === "string"
  return (_tag === "Granted" || _tag === "Forbidden") && typeof operator === "string"
}

/** Calls the hook. If it throws or returns anything else, the request is refused. */
const decide = (authorize: Authorize, request: Request, action: Action): Effect.Effect<Decision> => {
  const unknown: Decision = { _tag: "Unknown" }
  const asked = Effect.tryPromise(async () => authorize(request, action))
  return Effect.orElseSucceed(
    Effect.map(asked, (answer) => (isDecision(answer) ? answer : unknown)),
    () => unknown
  )
}

const isRead = ({ method }: Request): boolean => method === "GET" || method === "HEAD"

/** Makes the gate of a console. */
export const make = ({ authorize, hosts, isOpen, proxies, token }: Options) => {
  const [all, acts, failures] = [limits.all, limits.acts, limits.failures].map(([burst, rate]) =>
    RateLimit.make(burst, rate)
  )
  const clientOf = ClientAddress.make(proxies)

  /** Refuses a request for reasons that do not depend on its operator. */
  const enter = (request: Request, { address }: Client, now: number): Refusal | undefined => {
    const host = Host.of(request)
    if (!Host.isAllowed(host, hosts)) {
      return refuse(
        421,
        `this console is not ${host}`,
        "If the console serves this host, add the host to the option hosts"
      )
    }
    if (isOpen && !(Host.isLoopbackAddress(address) && !ClientAddress.isForwarded(request.headers))) {
      return refuse(
        403,
        "this console has no authentication, so it serves only this machine, without a proxy",
        "To serve other machines, set the option authorize"
      )
    }
    // Before the limit: requests from other sites do not use up the limit of the user.
    if (isRead(request) && !CrossSite.isReadable(request.headers)) {
      return refuse(403, "the request comes from another site", "Open the console itself")
    }
    if (!isRead(request) && !CrossSite.isOwn(request.headers, host)) {
      return refuse(403, "the request does not come from a page of this console", "Nothing was done")
    }
    return all!.take(clientOf(address, request.headers), now) ? undefined : tooOften
  }

  /**
   * Returns the operator and all granted actions, or refuses the action. `client` in the result is the key of the rate
   * limits.
   */
  const admit = (request: Request, { address }: Client, action: Action, now: number) =>
    Effect.gen(function* () {
      const decision = yield* decide(authorize, request, action)
      const client = JSON.stringify([clientOf(address, request.headers), decision.operator?.slice(0, 64)])
      const hasCredentials = request.headers.has("authorization")
      // A request without credentials is asked for them.
      if (hasCredentials && !failures!.has(client, now)) return yield* tooOften
      if (decision._tag === "Granted" && !isRead(request) && !acts!.take(client, now)) return yield* tooOften
      if (decision._tag === "Granted") {
        const each = yield* Effect.forEach(actions, (other) =>
          Effect.map(decide(authorize, request, other), ({ _tag }) => (_tag === "Granted" ? [other] : []))
        )
        return { operator: decision.operator, may: new Set(each.flat()), client }
      }
      if (decision._tag === "Forbidden") {
        return yield* refuse(
          403,
          `${decision.operator} may not do this: it needs the role ${action}`,
          "Ask an operator with that role"
        )
      }
      if (hasCredentials) failures!.take(client, now)
      const headers = decision.challenge === undefined ? undefined : { "www-authenticate": decision.challenge }
      return yield* refuse(401, "you are not signed in", "Sign in", headers)
    })

  /** Refuses a form that this process has not made for this operator. */
  const verify = (operator: string, given: string | null, now: number): Refusal | undefined =>
    given !== null && token.matches(operator, given, now)
      ? undefined
      : refuse(
          403,
          "the form is too old, or from another process",
          "Nothing was done. Go back, reload the page, and try again"
        )

  return { enter, admit, verify }
}
