/** The sources of NSQ. */
import { redact } from "./amqp.ts"
import {
  foreign,
  ofNodes,
  settingsOf,
  Unavailable,
  type Broker,
  type Node,
  type Source,
  type StartOptions
} from "./Broker.ts"
import * as docker from "./docker.ts"
import * as Instance from "./Instance.ts"
import { isOf } from "./installation.ts"
import * as Host from "./nsq/Host.ts"
import { identify } from "./nsq/identify.ts"
import * as installation from "./nsq/installation.ts"
import * as nodes from "./nsq/nodes.ts"
import { untilReady } from "./ready.ts"

export interface NsqStartOptions extends StartOptions {
  /** Flags for every nsqd. Default: none. */
  readonly flags?: nodes.Flags | undefined
}

/** One nsqlookupd and its nsqds. `url` is the address of the first nsqd, `managementUrl` that of nsqlookupd over HTTP. */
export interface NsqBroker extends Broker {
  /** The nsqlookupd, which is not one of the nodes; `undefined` if an environment variable named the broker. */
  readonly lookupd: Node | undefined
}

const variable = "REQUEUE_NSQ_URL"
const image = (version: string) => `nsqio/nsq:v${isRelease(version) ? version : installation.release}`

const isRelease = (version: string) => /^\d/.test(version)

const defaults = (options: NsqStartOptions) => ({ ...settingsOf(options), flags: options.flags ?? {} })

type Settings = ReturnType<typeof defaults>

const attach = async ({ count, flags, version }: Settings): Promise<NsqBroker> => {
  const url = process.env[variable] ?? ""
  if (url === "") throw new Unavailable(`${variable} is not set`)
  if (!/^nsq:\/\/[^,]+$/.test(url) || !URL.canParse(url)) {
    throw new Error(`${variable} must look like nsq://host:4150, got "${redact(url)}"`)
  }
  const found = await identify(url).catch((cause: Error) => {
    throw new Error(`${variable}: no connection to ${redact(url)}: ${cause.message}. Correct it, or unset it`)
  })
  if (isRelease(version) && !isOf(found, version)) {
    throw new Error(`${variable}: NSQ ${version} was requested, but ${redact(url)} is ${found}. Unset the variable`)
  }
  if (count > 1) throw new Error(`${variable}: ${count} nodes cannot be made of one address. Unset it`)
  const [flag] = Object.keys(flags)
  if (flag !== undefined) throw new Error(`${variable}: --${flag} can be set only where nsqd is started. Unset it`)
  const managementUrl = process.env["REQUEUE_NSQ_MANAGEMENT_URL"]
  return { ...foreign(variable, { version: found, url, managementUrl }), lookupd: undefined }
}

/** Waits until nsqlookupd knows every nsqd. */
const registered = async ({ lookupd, nodes: all, isAlive }: nodes.Made, { deadline, say }: Settings): Promise<void> => {
  const ask = async (milliseconds: number) => {
    const response = await fetch(`${lookupd.url}nodes`, { signal: AbortSignal.timeout(milliseconds) })
    const found: unknown = response.ok ? await response.json() : {}
    const { producers = [] } = found as { readonly producers?: ReadonlyArray<unknown> } // as nsqlookupd documents it
    if (producers.length !== all.length) throw new Error(`nsqlookupd knows ${producers.length}`)
  }
  await untilReady(ask, {
    what: `Discovery of ${all.length} nsqd`,
    deadline,
    isAlive,
    log: async () => (await Promise.all([lookupd, ...all].map((node) => node.log()))).join("\n"),
    say
  })
}

/** Makes an instance, starts its programs, and leaves nothing behind if that fails. */
const launch = async (settings: Settings, hostOf: (instance: Instance.Instance) => Promise<Host.Host>) => {
  const instance = await Instance.make()
  try {
    const host = await hostOf(instance)
    const made = await nodes.make(instance, host, settings)
    const [first] = made.nodes
    await made.lookupd.start()
    await Promise.all(made.nodes.map((node) => node.start()))
    await registered(made, settings)
    const version = await identify(first.url)
    const { source } = host
    const { managementUrl } = made.lookupd
    instance.note({ broker: "nsq", version, source, url: first.url, managementUrl, nodes: settings.count })
    if (settings.detached) await instance.detach()
    const broker = ofNodes(made.nodes, { version, source, managementUrl, dispose: instance.dispose })
    return { ...broker, lookupd: made.lookupd }
  } catch (cause) {
    await instance.dispose()
    throw cause
  }
}

const launchLocal = (found: installation.Installation, settings: Settings): Promise<NsqBroker> =>
  launch(settings, async (instance) => Host.local(instance, found))

/** Flags that name files or addresses of this machine, which a container cannot see. */
const ofMachine = ["auth-http-address", "tls-cert", "tls-key", "tls-root-ca-file"] as const

const launchContainer = async (settings: Settings): Promise<NsqBroker> => {
  const { count, flags, say, version } = settings
  if (version === "system") throw new Unavailable("the machine's own server was requested")
  const unseen = ofMachine.find((name) => flags[name] !== undefined)
  if (unseen !== undefined) throw new Unavailable(`a container does not see what --${unseen} names`)
  await docker.needsEngine()
  if (!isRelease(version) && atHand().length > 0 && !(await docker.hasImage(image(version)))) {
    throw new Unavailable(`${image(version)} is not at hand, and nsqd is`)
  }
  return launch(settings, (instance) => Host.container(instance, image(version), nodes.portsOf(instance, count), say))
}

/** The installations that run here without a download. */
const atHand = () => [...installation.installed(), ...[installation.built()].filter((one) => one !== undefined)]

const launchInstalled = async (settings: Settings): Promise<NsqBroker> => {
  const { version } = settings
  const found = (version === "system" ? installation.installed() : atHand()).find(
    (one) => !isRelease(version) || isOf(one.version, version)
  )
  if (found !== undefined) return launchLocal(found, settings)
  const others = atHand().map((one) => one.version)
  throw new Unavailable(others.length === 0 ? "none found" : `there is only ${others.join(", ")}`)
}

const launchBuilt = async (settings: Settings): Promise<NsqBroker> => {
  const { say, version } = settings
  if (version === "system") throw new Unavailable("the machine's own server was requested")
  if (isRelease(version) && !isOf(installation.release, version)) throw new Unavailable(`${installation.release} only`)
  return launchLocal(await installation.build(say), settings)
}

/** The nsqds are independent: clients find all of them through nsqlookupd. */
export const nodeCounts = [1, 2, 3]

/** Whether the environment names one, or one is installed. */
export const isAtHand = (): boolean => (process.env[variable] ?? "") !== "" || atHand().length > 0

/** Whether the server at this address accepts connections. */
export const answers = (url: string): Promise<boolean> =>
  identify(url).then(
    () => true,
    () => false
  )

export const sources: ReadonlyArray<Source<NsqStartOptions, NsqBroker>> = [
  { name: "the environment", open: (options) => attach(defaults(options)) },
  { name: "a Docker engine", open: (options) => launchContainer(defaults(options)) },
  { name: "an installed nsqd", open: (options) => launchInstalled(defaults(options)) },
  { name: "Go", open: (options) => launchBuilt(defaults(options)) }
]

export const remedy = (version = "newest"): string =>
  `No NSQ${isRelease(version) ? ` ${version}` : ""} here. Install nsqd and nsqlookupd, or Go, or start Docker, or set ` +
  `${variable} to the address of one. Tried:`
