/** The sources of RabbitMQ. */
import { randomBytes } from "node:crypto"
import { handshake, redact } from "./amqp.ts"
import { foreign, ofNodes, settingsOf, Unavailable, type Source, type StartOptions } from "./Broker.ts"
import * as debian from "./debian.ts"
import * as docker from "./docker.ts"
import * as dockerNode from "./dockerNode.ts"
import * as Instance from "./Instance.ts"
import { byAge, isOf, ofSystem, ofTree, type Installation } from "./installation.ts"
import * as localNodes from "./localNodes.ts"
import type { Certificates, RabbitMqBroker, RabbitMqNode } from "./RabbitMqNode.ts"
import { untilReady } from "./ready.ts"

export interface RabbitMqStartOptions extends StartOptions {
  /** Listens with TLS as well. Default: it does not. */
  readonly tls?: Certificates | undefined
  /** The public key for tokens, as PEM text: clients may log in by OAuth 2 too. Default: they may not. */
  readonly tokenKey?: string | undefined
}

const variable = "REQUEUE_RABBITMQ_URL"

/** The Debian releases that have these versions. */
const debians: { readonly [version: string]: string } = { "3.10": "bookworm", "4.0": "trixie", "4.3": "sid" }
const packageName = "rabbitmq-server"
const newestImage = "4.3"

const isRelease = (version: string) => /^\d/.test(version)

const defaults = (options: RabbitMqStartOptions) => ({
  ...settingsOf(options),
  tls: options.tls,
  tokenKey: options.tokenKey,
  password: randomBytes(8).toString("hex")
})

type Settings = ReturnType<typeof defaults>

const attach = async ({ version, count, tls, tokenKey }: Settings): Promise<RabbitMqBroker> => {
  const url = process.env[variable] ?? ""
  if (url === "") throw new Unavailable(`${variable} is not set`)
  if (!/^amqps?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Error(`${variable} must look like amqp://user:password@host:5672/vhost, got "${redact(url)}"`)
  }
  const found = await handshake(url).catch((cause: Error) => {
    throw new Error(`${variable}: no connection to ${redact(url)}: ${cause.message}. Correct it, or unset it`)
  })
  if (isRelease(version) && !isOf(found, version)) {
    throw new Error(
      `${variable}: RabbitMQ ${version} was requested, but ${redact(url)} is ${found}. Unset the variable`
    )
  }
  if (count > 1) throw new Error(`${variable}: a cluster of ${count} nodes cannot be made of one address. Unset it`)
  if (tls !== undefined || tokenKey !== undefined) {
    throw new Error(`${variable}: TLS and OAuth 2 can be set only where a server is started. Unset it`)
  }
  return foreign(variable, { version: found, url, managementUrl: process.env["REQUEUE_RABBITMQ_MANAGEMENT_URL"] })
}

/** The installations that run here without a download, newest first. */
const atHand = (): ReadonlyArray<Installation> => {
  const trees = Object.values(debians).map((release) => ofTree(debian.treeOf(release, packageName)))
  return [ofSystem(), ...trees].filter((one) => one !== undefined).toSorted(byAge)
}

const pick = (version: string): Installation | undefined => {
  if (version === "system") return ofSystem()
  return version === "newest" ? atHand()[0] : atHand().find((one) => isOf(one.version, version))
}

/** Waits until the first node sees all of them running. */
const joined = async (nodes: ReadonlyArray<RabbitMqNode>, { deadline, say }: Settings): Promise<void> => {
  const { username, password, host } = new URL(nodes[0]?.managementUrl ?? "")
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` }
  const ask = async (milliseconds: number) => {
    const response = await fetch(`http://${host}/api/nodes`, { headers, signal: AbortSignal.timeout(milliseconds) })
    const peers = response.ok ? ((await response.json()) as ReadonlyArray<{ running?: boolean }>) : [] // as RabbitMQ documents it
    const running = peers.filter((peer) => peer.running === true).length
    if (running !== nodes.length) throw new Error(`${running} are running`)
  }
  await untilReady(ask, {
    what: `A cluster of ${nodes.length} nodes`,
    deadline,
    // They run on this machine: a container runs no cluster.
    isAlive: () => nodes.every((node) => node.pid() !== undefined),
    log: async () => (await Promise.all(nodes.map((node) => node.log()))).join("\n"),
    say
  })
}

/** Makes an instance, starts its nodes, and leaves nothing behind if that fails. */
const launch = async (
  source: string,
  settings: Settings,
  make: (instance: Instance.Instance) => Promise<readonly [RabbitMqNode, ...Array<RabbitMqNode>]>
): Promise<RabbitMqBroker> => {
  const instance = await Instance.make()
  try {
    const nodes = await make(instance)
    const [first] = nodes
    // All at once, because the nodes of a cluster look for each other while they start.
    await Promise.all(nodes.map((node) => node.start()))
    if (nodes.length > 1) await joined(nodes, settings)
    const version = await handshake(first.url)
    const { url, managementUrl } = first
    instance.note({ broker: "rabbitmq", version, source, url, managementUrl, nodes: settings.count })
    if (settings.detached) await instance.detach()
    return ofNodes(nodes, { version, source, managementUrl, dispose: instance.dispose })
  } catch (cause) {
    await instance.dispose()
    throw cause
  }
}

const launchLocal = (found: Installation, settings: Settings) =>
  launch(found.root ?? found.scripts, settings, async (instance) => localNodes.make(instance, found, settings))

const launchContainer = async (settings: Settings): Promise<RabbitMqBroker> => {
  const { version, count, tls, tokenKey } = settings
  if (version === "system") throw new Unavailable("the machine's own server was requested")
  if (count > 1) throw new Unavailable("clusters are made of servers on this machine only")
  if (tls !== undefined || tokenKey !== undefined) {
    throw new Unavailable("only servers on this machine have TLS and OAuth 2")
  }
  await docker.needsEngine()
  const image = `rabbitmq:${isRelease(version) ? version : newestImage}-management`
  if (!isRelease(version) && atHand().length > 0 && !(await docker.hasImage(image))) {
    throw new Unavailable(`${image} is not at hand, and an installed server is`)
  }
  return launch(image, settings, async (instance) => [await dockerNode.make(instance, { ...settings, image })])
}

const launchInstalled = async (settings: Settings): Promise<RabbitMqBroker> => {
  const found = pick(settings.version)
  if (found !== undefined) return launchLocal(found, settings)
  const others = atHand().map((one) => one.version)
  throw new Unavailable(others.length === 0 ? "none found" : `there is only ${others.join(", ")}`)
}

const launchPackage = async (settings: Settings): Promise<RabbitMqBroker> => {
  const { version, say } = settings
  const release = debians[version]
  if (isRelease(version) && release === undefined) throw new Unavailable(`of ${Object.keys(debians).join(", ")} only`)
  if (release === undefined) await debian.install(packageName, say)
  const found = release === undefined ? ofSystem() : ofTree(await debian.makeTree(release, packageName, say))
  if (found === undefined) throw new Unavailable(`${packageName} was installed, but is not found`)
  if (release === undefined || isOf(found.version, version)) return launchLocal(found, settings)
  throw new Unavailable(`Debian ${release} has ${found.version} now`)
}

/** One node, or a cluster of three. */
export const nodeCounts = [1, 3]

/** Whether the environment names one, or one is installed. */
export const isAtHand = (): boolean => (process.env[variable] ?? "") !== "" || atHand().length > 0

/** Whether the server at this address accepts connections. */
export const answers = (url: string): Promise<boolean> =>
  handshake(url).then(
    () => true,
    () => false
  )

export const sources: ReadonlyArray<Source<RabbitMqStartOptions, RabbitMqBroker>> = [
  { name: "the environment", open: (options) => attach(defaults(options)) },
  { name: "a Docker engine", open: (options) => launchContainer(defaults(options)) },
  { name: "an installed server", open: (options) => launchInstalled(defaults(options)) },
  { name: "Debian's packages", open: (options) => launchPackage(defaults(options)) }
]

export const remedy = (version = "newest"): string =>
  `No RabbitMQ${isRelease(version) ? ` ${version}` : ""} here. Install rabbitmq-server, or start Docker, or set ` +
  `${variable} to the address of one. Tried:`
