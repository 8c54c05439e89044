/** Resolves a broker's address to its adapter: a given one, or the one package that the address names. */
import { createRequire } from "node:module"
import { join, resolve as resolvePath } from "node:path"
import { pathToFileURL } from "node:url"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as BrokerUrl from "../../options/BrokerUrl.ts"
import { ConfigurationError } from "../../options/ConfigurationError.ts"
import { nearest } from "../../options/nearest.ts"
import { show } from "../../options/OptionKind.ts"
import * as Runtime from "../../options/runtime.ts"
import { summarize } from "../../policy/Failure.ts"
import { type Adapter, isAdapter, type Options } from "../../port/Adapter.ts"

/** The packages of schemes whose names differ. */
const packages: ReadonlyMap<string, string> = new Map([
  ["memory", "@requeue/adapter-memory"],
  ["sqlite", "@requeue/adapter-sqlite"],
  ["postgres", "@requeue/adapter-postgres"],
  ["postgresql", "@requeue/adapter-postgres"],
  ["amqp", "@requeue/adapter-rabbitmq"],
  ["amqps", "@requeue/adapter-rabbitmq"],
  ["nsq", "@requeue/adapter-nsq"],
  ["sqs", "@requeue/adapter-sqs"]
])

/** The package of another author's scheme, by convention. */
const conventional = (scheme: string): string => `requeue-adapter-${scheme}`

/** An adapter and its address. The address may hold passwords, and is not shown. */
export interface Resolved {
  readonly adapter: Adapter
  /** The scheme of the URL, without the colon. */
  readonly scheme: string
  readonly address: Redacted.Redacted<{ readonly url: URL; readonly options: Options }>
}

/** Where to find an adapter, in addition to the address. */
export interface Sources {
  /** Adapters that need no import. Default: none. */
  readonly adapters?: ReadonlyArray<Adapter> | undefined
  /**
   * A file from which the adapter's package can be imported. Default: only the core, the main file and the working
   * directory are tried.
   */
  readonly from?: string | undefined
}

/** Resolves an address: by its own adapter first, then the given ones, then the scheme's package. */
export const resolve = async (broker: unknown, sources: Sources = {}): Promise<Resolved> => {
  Runtime.check()
  const { adapter: named, url: address, ...options } = isConfig(broker) ? broker : { url: broker }
  const url = parse(Redacted.isRedacted(address) ? Redacted.value(address) : address)
  const scheme = url.protocol.slice(0, -1)
  const adapter = await adapterOf(scheme, named, sources)
  return { adapter, scheme, address: Redacted.make({ url, options }) }
}

const adapterOf = async (scheme: string, named: unknown, { adapters = [], from }: Sources): Promise<Adapter> => {
  if (typeof named === "string") return serving(scheme, await load(named, scheme, from), named)
  if (named !== undefined) return serving(scheme, checked(named, "adapter"), "the adapter")
  if (!Array.isArray(adapters)) throw refusal("adapters", "must be a list", "Pass [adapter]")
  const ours = adapters.find((each) => checked(each, "adapters").schemes.includes(scheme))
  if (ours !== undefined) return ours
  const name = packages.get(scheme) ?? conventional(scheme)
  return serving(scheme, await load(name, scheme, from), name)
}

const isConfig = (
  broker: unknown
): broker is { readonly url: unknown; readonly adapter?: unknown } & Readonly<Record<string, unknown>> =>
  Object.prototype.toString.call(broker) === "[object Object]" && Object.hasOwn(Object(broker), "url")

const refusal = (field: string, detail: string, remedy: string) => new ConfigurationError({ field, detail, remedy })

const example = 'Write a URL such as "memory:" or "amqp://user:password@host"'

const parse = (broker: unknown): URL => {
  const isUrl = typeof broker === "string" || broker instanceof URL
  const parsed = isUrl
    ? BrokerUrl.parse(broker)
    : Result.fail({ detail: `the broker must be a URL, an object with a url, or a Layer, got ${show(broker)}` })
  if (Result.isSuccess(parsed)) return parsed.success.url
  const { detail, remedy = example }: BrokerUrl.Problem = parsed.failure
  throw refusal("url", detail, remedy)
}

const checked = (value: unknown, field: string): Adapter => {
  if (isAdapter(value)) return value
  throw refusal(
    field,
    "the value is not an adapter: an adapter has schemes and a layer",
    "Pass what the adapter's package exports as adapter"
  )
}

const serving = (scheme: string, adapter: Adapter, subject: string): Adapter => {
  if (adapter.schemes.includes(scheme)) return adapter
  const known = adapter.schemes.map((each) => `${each}:`).join(", ")
  throw refusal("url", `${subject} does not serve the scheme ${scheme}:`, `Use a URL with ${known}, or another adapter`)
}

/** A package, or a module of one: no files, no code in a URL, no dots that leave the package. */
const packageName = /^(@\w[\w.-]*\/)?\w[\w.+-]*(\/\w[\w.-]*)*$/

const load = async (name: string, scheme: string, from: string | undefined): Promise<Adapter> => {
  if (!packageName.test(name)) {
    throw refusal(
      "adapter",
      "the value is not the name of a package",
      "Set adapter to the name of a package, such as @acme/requeue-redis"
    )
  }
  const module = await imported(name, scheme, from)
  if (isAdapter(module.adapter)) return module.adapter
  throw refusal("adapter", `${name} exports no adapter`, "Set adapter to a package that exports an adapter as adapter")
}

const imported = async (
  name: string,
  scheme: string,
  from: string | undefined
): Promise<{ readonly adapter?: unknown }> => {
  try {
    return await import(name)
  } catch (error) {
    if (!isMissing(error, name)) throw broken(name, error)
  }
  // With a strict node_modules layout, the adapter is a dependency of the program and not visible from here.
  const files = [from, process.argv[1], join(process.cwd(), "package.json")].filter((each) => each !== undefined)
  const file = files.map((each) => resolvedFrom(each, name)).find((found) => found !== undefined)
  if (file === undefined) throw missing(name, scheme)
  try {
    return await import(pathToFileURL(file).href)
  } catch (error) {
    throw broken(name, error)
  }
}

const resolvedFrom = (file: string, name: string): string | undefined => {
  try {
    return createRequire(resolvePath(file)).resolve(name)
  } catch (error) {
    if (codeOf(error) === "ERR_PACKAGE_PATH_NOT_EXPORTED") throw broken(name, error)
    return undefined
  }
}

const missing = (name: string, scheme: string): ConfigurationError => {
  if (name !== conventional(scheme)) {
    return refusal(
      "url",
      `the adapter for ${scheme}: is not installed`,
      `Run: npm install ${packageOf(name)}. In a bundle, pass the package's adapter: { adapters: [adapter] }`
    )
  }
  if (scheme === "http" || scheme === "https") {
    const examples = "sqs://eu-west-1/123456789012 for SQS, amqp://host for RabbitMQ or nsq://host:4150 for NSQ"
    return refusal("url", `${scheme}: is not the scheme of a broker`, `Write ${examples}`)
  }
  // Anyone may own a package of this name, so the error for a mistyped scheme must not suggest to install it.
  const meant = nearest(scheme, [...packages.keys()])
  const known = [...packages.keys()].map((each) => `${each}:`).join(", ")
  return refusal(
    "url",
    `no adapter serves the scheme ${scheme}:`,
    meant === undefined
      ? `Known schemes: ${known}. For another adapter, set the option adapter to the name of its package`
      : `Did you mean ${meant}:?`
  )
}

const broken = (name: string, cause: unknown): ConfigurationError =>
  new ConfigurationError({
    field: "adapter",
    detail: `${name} cannot be imported: ${summarize(cause).message.split("\n")[0]}`,
    remedy: "Install what the package needs, or import the package and pass its adapter",
    cause
  })

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined)

/** The package that a module belongs to. */
const packageOf = (name: string): string => /^(@[^/]+\/)?[^/]+/.exec(name)![0]

/** Whether the adapter itself is missing, not a package that it imports. */
const isMissing = (error: unknown, name: string): boolean =>
  codeOf(error) === "ERR_MODULE_NOT_FOUND" &&
  error instanceof Error &&
  error.message.startsWith(`Cannot find package '${packageOf(name)}'`)
