/** A program of the page as a process, and the service that its handlers call. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import { connect, type AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import type { Prepared } from "./programs.ts"

/** An order as the programs ship it. Each has its own `total`, by which it is known when its id never came back. */
export interface Order {
  readonly id: string
  readonly total: number
}

/** Asks again until the answer is so; a minute at most. */
export const until = async (what: string, isSo: () => boolean | Promise<boolean>): Promise<void> => {
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(20)) if (await isSo()) return
  throw new Error(`it did not come to this: ${what}`)
}

/** Ships orders: notes each that comes, and answers after `pace.wait`. */
export const shipping = async (wait: () => Promise<unknown> = () => sleep(500)) => {
  const pace = { wait }
  const begun: Array<Order> = []
  const shipped: Array<Order> = []
  const ship = async (order: Order) => {
    begun.push(order)
    await pace.wait()
    shipped.push(order)
  }
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (more: string) => (body += more))
    request.once("end", () => {
      void ship(JSON.parse(body) as Order).then(() => response.end()) // What the programs send.
    })
  }).listen(0, "127.0.0.1")
  // Longer than clients keep idle connections, so that it closes none while an order is on its way.
  server.keepAliveTimeout = 60_000
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // It listens on TCP.
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}/`, pace, begun, shipped, close }
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // It listens on TCP.
  server.close()
  await once(server, "close")
  return port
}

/** Starts a program on a broker. */
export const start = async ({ cwd, file }: Prepared, brokerUrl: string, ordersUrl: string) => {
  const port = await freePort()
  const child = spawn(process.execPath, ["--conditions=@requeue/source", file], {
    cwd,
    env: { ...process.env, PORT: String(port), BROKER_URL: brokerUrl, ORDERS_URL: ordersUrl },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let said = ""
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text))
  const ended = once(child, "close").then(([code, signal]: Array<unknown>) => ({ code, signal }))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const origin = `http://127.0.0.1:${port}`
  /** The status of an answer; `undefined` where nobody answers. */
  const status = (path: string) =>
    fetch(origin + path).then(
      (response) => response.status,
      () => undefined
    )
  const failed: Array<string> = []
  const unanswered = new Set<number>()
  return {
    status,
    /** The answers of requests that came to a handler and failed there. Fastify answers 503 by itself while it closes. */
    failed: () => failed,
    /** The orders whose connection ended before their answer: the program may have sent them all the same. */
    unanswered,
    said: () => said,
    ready: () =>
      until("ready", async () => {
        if (hasEnded()) throw new Error(`it ended: ${said}`)
        return (await status("/readyz")) === 200
      }),
    /** Waits until it accepts no more connections. */
    portClosed: () => until("its port is closed", async () => (await status("/livez")) === undefined),
    /** The id of an order that was accepted; `undefined` where it was not. */
    order: async (total: number): Promise<string | undefined> => {
      const request = { method: "POST", headers: { "content-type": "application/json" }, body: `{"total":${total}}` }
      try {
        const response = await fetch(`${origin}/orders`, request)
        const text = await response.text()
        if (response.status >= 500 && response.status !== 503) failed.push(text)
        return response.status === 202 ? (JSON.parse(text) as { id: string }).id : undefined // As the page has it.
      } catch (error) {
        const isRefused = error instanceof Error && (error.cause as { code?: string }).code === "ECONNREFUSED" // Node's.
        if (!isRefused) unanswered.add(total)
        return undefined
      }
    },
    /** The answer to a post without a body. */
    empty: async () => (await fetch(`${origin}/orders`, { method: "POST" })).status,
    /**
     * A client whose order the server has begun to read, and waits for the rest of. `finish` sends it, with another order after
     * it on the same connection, and answers what came until the connection ended.
     */
    begin: async (total: number) => {
      const socket = connect(port, "127.0.0.1").on("error", () => {})
      const head = "POST /orders HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length:"
      const bodies = [total, total + 1].map((each) => `{"total":${each}}`)
      socket.write(`${head} ${bodies[0]!.length}\r\nexpect: 100-continue\r\n\r\n`)
      // HTTP/1.1 100 Continue
      await once(socket, "data")
      const finish = async (): Promise<ReadonlyArray<string>> => {
        let text = ""
        socket.setEncoding("utf8").on("data", (more: string) => (text += more))
        socket.write(`${bodies[0]}${head} ${bodies[1]!.length}\r\n\r\n${bodies[1]}`)
        if (!socket.closed) await once(socket, "close")
        const answers = text.split(/(?=HTTP\/1\.1 )/).filter((answer) => answer !== "")
        for (const each of [total, total + 1].slice(answers.length)) unanswered.add(each)
        return answers
      }
      return { finish }
    },
    /** How it ended, after SIGTERM or by itself; it is killed if it has not after a minute. */
    end: async (signal?: "SIGTERM") => {
      if (signal !== undefined) child.kill(signal)
      const timer = setTimeout(() => child.kill("SIGKILL"), 60_000)
      return ended.finally(() => clearTimeout(timer))
    },
    kill: () => void child.kill("SIGKILL")
  }
}
export type Service = Awaited<ReturnType<typeof start>>
