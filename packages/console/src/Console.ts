/**
 * The console: a function from requests to responses that serves the dead letters and queues of all brokers.
 *
 * When to use: to mount the console under a path of your application, behind its sign-in. The command `requeue console` serves
 * it alone.
 */
import { type Event } from "@requeue/core"
import { ConsumerOptions, OptionKind, OptionNames } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type * as Audit from "./Audit.ts"
import * as Authorization from "./Authorization.ts"
import type { BrokerSource } from "./BrokerSource.ts"
import * as ClientAddress from "./internal/guard/clientAddress.ts"
import * as Host from "./internal/guard/host.ts"
import * as Paths from "./internal/paths.ts"
import * as Handler from "./internal/handler.ts"
import * as Trace from "./internal/trace.ts"
import * as Events from "./internal/work/events.ts"
import * as Redaction from "./Redaction.ts"

/** Options of {@link make}. */
export interface Options {
  /** The brokers and their queues; see `BrokerSource`. */
  readonly brokers: ReadonlyArray<BrokerSource>
  /** Stores the lines of the audit. It has no default, because every action must be recorded. */
  readonly audit: Audit.Write
  /** The path where the console is mounted, such as `/requeue`. Default: the root. */
  readonly base?: string | undefined
  /** Decides which actions a request may do. Default: requests from this machine are `local`, and others are refused. */
  readonly authorize?: Authorization.Authorize | undefined
  /**
   * The operator and the role of requests from this machine, without `authorize`. Default: `local` with the role `redrive`.
   */
  readonly local?: { readonly operator: string; readonly role: Authorization.Action } | undefined
  /**
   * The hosts that requests may name, such as `ops.example.com` or `localhost:4747`. Others are refused. Default: the names of
   * this machine.
   */
  readonly hosts?: ReadonlyArray<string> | undefined
  /**
   * The addresses of trusted proxies, such as `10.0.0.7` or `10.0.0.0/8`. The console reads the client's address from their
   * header `X-Forwarded-For`. Without this option, all users of a proxy share the limits of one client. Default: none.
   */
  readonly proxies?: ReadonlyArray<string> | undefined
  /** Hides parts of letters that operators must not see. Default: `Redaction.standard`. */
  readonly redact?: Redaction.Redact | undefined
  /**
   * The URL of a trace in your tracing tool, such as `https://traces.example.com/trace/{traceId}`, by HTTP or HTTPS. The
   * URL may have `{spanId}` as well. Letters with the header `traceparent` link to it. Default: no links.
   */
  readonly traceUrl?: string | undefined
  /** Milliseconds that a page waits for a broker, 1 to 60,000. Default: 2,000. */
  readonly timeout?: number | undefined
}

/** A console. */
export interface Console {
  /**
   * Answers a request, and never rejects. Pass the remote address of the request's socket as `client`, because only your
   * server knows it. Without `client`, a console without authentication refuses every request.
   */
  readonly fetch: (request: Request, client?: { readonly address: string }) => Promise<Response>
  /** Whether the console has no authentication. If so, other machines must not reach it. */
  readonly isOpen: boolean
  /** The hosts that requests may name; `undefined` for the names of this machine. */
  readonly hosts: ReadonlyArray<string> | undefined
  /**
   * Returns a function for the option `onEvent` of consumers in this process. The page of events then shows their failures.
   * `broker` is the name of their broker in this console.
   *
   * @throws RangeError when no broker has that name
   */
  readonly onEvent: (broker: string) => Event.Hook
}

const kinds: OptionNames.Of<Options> = {
  brokers: OptionKind.list,
  audit: OptionKind.callback,
  base: { expected: "a path such as /requeue", holds: (value) => typeof value === "string" && Paths.isBase(value) },
  authorize: OptionKind.callback,
  local: OptionKind.object("an operator and a role", "operator", "role"),
  hosts: OptionKind.list,
  proxies: {
    expected: "a list of addresses, such as 10.0.0.7 or 10.0.0.0/8",
    holds: (value) =>
      Array.isArray(value) && value.every((each) => typeof each === "string" && ClientAddress.isNetwork(each))
  },
  redact: OptionKind.callback,
  traceUrl: {
    expected:
      "a URL by http or https with {traceId} after its host, such as https://traces.example.com/trace/{traceId}",
    holds: (value) => typeof value === "string" && Trace.isTemplate(value)
  },
  timeout: OptionKind.whole(1, 60_000)
}

/** The fields of an audit line that events show. */
type Line =
  | { readonly event: "letter" }
  | {
      readonly event: "begin" | "end"
      readonly broker: string
      readonly command: string
      readonly operator: string
      readonly outcome: string
      readonly queues: readonly [string | { readonly queue: string }]
    }

/** Adds an event for each operation, after its audit line is stored. Lines of single letters add none. */
const telling =
  (audit: Audit.Write, events: Events.Events): Audit.Write =>
  async (lines) => {
    await audit(lines)
    // Cast, because the console wrote the line.
    const line = JSON.parse(lines.slice(0, lines.indexOf("\n"))) as Line
    if (line.event === "letter") return
    const { broker, command, event, operator, outcome, queues } = line
    const [first] = queues
    const words = event === "begin" ? `${command} began, by ${operator}` : `${command} of ${operator} ended: ${outcome}`
    const queue = typeof first === "string" ? first : first.queue
    events.add({ kind: "Operation", broker, queue, words, isBad: outcome === "failed" })
  }

/**
 * Makes a console that lives until the scope closes. Then it stops its jobs, and waits until they have ended. It connects
 * to a broker at the first request.
 *
 * @throws RangeError when an option of the console or of a queue is unknown or of another kind, when two brokers have the
 * same name, or when `hosts` names other machines and `authorize` is missing
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { BrokerSource, Console } from "@requeue/console"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const queue = BrokerSource.queueOf({ name: "orders", options: {} })
 *   const broker = { name: "memory", queues: [queue], layer: MemoryBroker.layer(), secrets: [] }
 *   const { fetch } = yield* Console.make({ brokers: [broker], audit: (line) => console.log(line) })
 *   const response = yield* Effect.promise(() => fetch(new Request("http://localhost/"), { address: "127.0.0.1" }))
 *   return response.status
 * })
 *
 * await Effect.runPromise(Effect.scoped(program)) // => 200
 * ```
 */
export const make = (options: Options): Effect.Effect<Console, never, Scope.Scope> => {
  OptionNames.check("Console.make", options, kinds)
  const {
    audit,
    authorize,
    base = "",
    brokers,
    hosts,
    local = { operator: "local", role: "redrive" },
    proxies = [],
    redact = Redaction.standard,
    timeout = 2000,
    traceUrl
  } = options
  const missing = Object.entries({ brokers, audit }).find(
    ([, given]: readonly [string, unknown]) => given === undefined
  )
  if (missing !== undefined) throw new RangeError(`Console.make: ${missing[0]} must be given`)
  // A program in JavaScript may make queues without queueOf.
  for (const { name, options, retry } of brokers.flatMap(({ queues }) => queues)) {
    OptionNames.check("Console.make", { ...options, retry }, ConsumerOptions.kinds, name)
  }
  const isOpen = authorize === undefined
  const foreign = hosts?.find((host) => !Host.isLoopback(host))
  if (isOpen && foreign !== undefined) {
    throw new RangeError(
      `Console.make: the host ${foreign} needs authorize: without this option, every visitor could redrive`
    )
  }
  const twice = brokers.find(({ name }, index) => brokers.findIndex((other) => other.name === name) < index)
  if (twice !== undefined)
    throw new RangeError(`Console.make: brokers must have different names, got ${twice.name} twice`)
  return Effect.gen(function* () {
    const gate = { hosts, isOpen, proxies, authorize: authorize ?? Authorization.everybody(local.operator, local.role) }
    const clock = yield* Clock.Clock
    const events = Events.make(() => clock.currentTimeMillisUnsafe())
    const handle = yield* Handler.make({
      brokers,
      audit: telling(audit, events),
      events,
      redact,
      timeout,
      paths: Paths.make(base),
      gate,
      traceUrl: Trace.make(traceUrl)
    })
    const run = Effect.runForkWith(yield* Effect.context())
    return {
      isOpen,
      hosts,
      onEvent: (broker) => {
        if (brokers.some(({ name }) => name === broker)) return events.hook(broker)
        const names = brokers.map(({ name }) => name).join(", ")
        throw new RangeError(`Console.onEvent: broker must be one of ${names}, got ${broker}`)
      },
      fetch: (request, client = { address: "" }) =>
        new Promise((resolve) => {
          const answered = Effect.flatMap(Clock.currentTimeMillis, (now) => handle(request, client, now))
          // It never fails, and only the end of the process interrupts it.
          run(answered).addObserver((exit) =>
            resolve(Exit.isSuccess(exit) ? exit.value : new Response(null, { status: 503 }))
          )
        })
    }
  })
}
