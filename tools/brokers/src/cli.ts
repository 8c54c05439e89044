/** `npm run brokers`: brokers that stay up until they are taken down. */
import { parseArgs } from "node:util"
import type { StartOptions } from "./Broker.ts"
import * as Instance from "./Instance.ts"
import { codeOf } from "./errorCode.ts"
import { chromium } from "./chromium.ts"
import { isAlive } from "./processes.ts"
import { isName, kinds, names, prepare, start, type BrokerName } from "./start.ts"

const help = `npm run brokers -- <command> [name] [options]

  up [name]       starts a broker that stays up, and prints its URL
  down [name]     ends it and removes its data
  status [name]   lists the brokers; with a name, exit code 1 unless it is up
  prepare [name]  installs what is missing to start one, and reports how long that took; prints a line for each that
                  is not available. The name may also be chromium

Names: ${names.join(", ")}. Without one: all of them.

Options of up
  --version v     newest (at hand without a download; the default), system, or a release such as 3.10, 4.0, 4.3;
                  for sqs fauxqs (the default), elasticmq or moto
  --nodes n       1 (the default); rabbitmq 3, for a cluster; nsq 2 or 3

RabbitMQ comes from REQUEUE_RABBITMQ_URL, a Docker engine, an installed server, or Debian's packages; NSQ from
REQUEUE_NSQ_URL, a Docker engine, an installed nsqd, or Go; SQS from REQUEUE_SQS_URL, or is the server that was asked
for: the first that has one. Exit codes: 0 done, 1 failed, 2 misused.`

class Misuse extends Error {}

const upNow = () =>
  Instance.list().flatMap(({ folder, record }) => {
    const { broker, url, version, nodes, source } = record.notes
    if (!isName(broker) || typeof url !== "string") return []
    return [
      { folder, record, name: broker, url, version: String(version), nodes: Number(nodes), source: String(source) }
    ]
  })

const isAny = (version: string): boolean => version === "newest" || version === "system"

/** Whether `4.3.6` belongs to the release `4.3`, or `moto 5.2.5` is `moto`. */
const isOf = (version: string, asked: string): boolean =>
  version === asked || [".", " "].some((end) => version.startsWith(`${asked}${end}`))

const stayingUp = (name: BrokerName) => upNow().filter((one) => one.name === name && one.record.owner === undefined)

const up = async (name: BrokerName, options: StartOptions): Promise<void> => {
  for (const one of stayingUp(name)) {
    if (!(await kinds[name].answers(one.url))) {
      console.error(`${name}: removing one that does not answer`)
      await Instance.remove(one.folder, one.record)
      continue
    }
    const { version = one.version, nodes = one.nodes } = options
    const same = nodes === one.nodes && (isAny(version) || isOf(one.version, version))
    if (!same) throw new Error(`${name} ${one.version} with ${one.nodes} node(s) is up: take it down first`)
    console.error(`${name} ${one.version} is up already`)
    console.log(one.url)
    return
  }
  const broker = await start(name, { ...options, detached: true })
  console.error(`${name} ${broker.version}, from ${broker.source}`)
  if (broker.managementUrl !== undefined) console.error(`management: ${broker.managementUrl}`)
  for (const node of broker.nodes) console.log(node.url)
  if (broker.nodes.length === 0) console.log(broker.url)
}

const down = async (name: BrokerName): Promise<void> => {
  const found = stayingUp(name)
  for (const one of found) await Instance.remove(one.folder, one.record)
  console.error(found.length === 0 ? `${name} is not up` : `${name} is down`)
}

/** Prints a line for each unavailable one. */
const prepareAll = async (asked: ReadonlyArray<BrokerName | "chromium">): Promise<void> => {
  for (const name of asked) {
    await (name === "chromium" ? chromium() : prepare(name)).catch((cause: unknown) => {
      // The sources that were tried are separate lines.
      console.log(`${name}: ${(cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s*\n\s*/g, " ")}`)
      process.exitCode = 1
    })
  }
}

const status = async (asked: ReadonlyArray<BrokerName>, one: boolean): Promise<void> => {
  const found = upNow().filter(({ name }) => asked.includes(name))
  const rows = await Promise.all(
    found.map(async ({ name, version, nodes, url, source, record }) => [
      name,
      version,
      String(nodes),
      (await kinds[name].answers(url)) ? "up" : "does not answer",
      record.owner === undefined ? "until down" : `of process ${record.owner.pid}`,
      record.processes
        .filter(isAlive)
        .map(({ pid }) => pid)
        .join(" ") || record.containers.join(" "),
      url,
      source
    ])
  )
  const table = [["name", "version", "nodes", "state", "kept", "processes", "url", "source"], ...rows]
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? []
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
  if (one && !rows.some((row) => row[3] === "up")) process.exitCode = 1
}

const main = async (args: Array<string>): Promise<void> => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { version: { type: "string" }, nodes: { type: "string" }, help: { type: "boolean", short: "h" } }
  })
  if (values.help === true) return console.log(help)
  const [command, name, ...rest] = positionals
  if (command === undefined || !["up", "down", "status", "prepare"].includes(command)) {
    throw new Misuse("Use up, down, status or prepare")
  }
  if (command === "prepare" && name === "chromium") return prepareAll([name])
  if (rest.length > 0 || (name !== undefined && !isName(name))) {
    throw new Misuse(`The name is one of ${names.join(", ")}`)
  }
  if (command !== "up" && (values.version ?? values.nodes) !== undefined) throw new Misuse("Options are for up only")
  const asked = name === undefined ? names : [name]
  const servers = asked.flatMap((each) => kinds[each].servers ?? [])
  const { version = "newest" } = values
  if (!isAny(version) && !servers.includes(version) && !/^\d+\.\d+(\.\d+)?$/.test(version)) {
    throw new Misuse(["--version is newest, system, a release such as 4.3", ...servers].join(", "))
  }
  const nodes = values.nodes === undefined ? undefined : Number(values.nodes)
  for (const each of asked) {
    const { nodeCounts } = kinds[each]
    if (nodes !== undefined && !nodeCounts.includes(nodes)) {
      throw new Misuse(`--nodes of ${each} is ${nodeCounts.join(" or ")}`)
    }
  }
  await Instance.sweep()
  if (command === "prepare") return prepareAll(name === undefined ? [...names, "chromium"] : [name])
  if (command === "status") return status(asked, name !== undefined)
  for (const each of asked) await (command === "up" ? up(each, { version: values.version, nodes }) : down(each))
}

const isMisuse = (cause: unknown): boolean =>
  cause instanceof Misuse || String(codeOf(cause)).startsWith("ERR_PARSE_ARGS")

await main(process.argv.slice(2)).catch((cause: unknown) => {
  console.error(cause instanceof Error ? cause.message : cause)
  if (isMisuse(cause)) console.error(`\n${help}`)
  process.exitCode = isMisuse(cause) ? 2 : 1
})
