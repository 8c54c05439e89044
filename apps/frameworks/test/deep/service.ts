/** A program of the page as a process, and the service that its handlers call. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import { connect, type AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import type { Prepared } from "./programs.ts"

/** Asks again until the answer is so; a minute at most. */
export const until = async (what: string, isSo: () => boolean | Promise<boolean>): Promise<void> => {
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(20)) if (await isSo()) return
  throw new Error(`it did not come to this: ${what}`)
}

/** Ships orders: notes the id of each that comes, and answers after `pace.millis`. */
export const shipping = async (millis: number) => {
  const pace = { millis }
  const begun: Array<string> = []
  const shipped: Array<string> = []
  const ship = async (id: string) => {
    begun.push(id)
    await sleep(pace.millis)
    shipped.push(id)
  }
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (more: string) => (body += more))
    request.once("end", () => {
      const { id } = JSON.parse(body) as { id: string } // What the programs send.
      void ship(id).then(() => response.end())
    })
  }).listen(0, "127.0.0.1")
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
  return {
    status,
    /** The answers of requests that came to a handler and failed there. Fastify answers 503 by itself while it closes. */
    failed: () => failed,
    said: () => said,
    ready: () =>
      until("ready", async () => {
        if (hasEnded()) throw new Error(`it ended: ${said}`)
        return (await status("/readyz")) === 200
      }),
    /** The id of an order that was accepted; `undefined` where it was not. */
    order: async (total: number): Promise<string | undefined> => {
      const request = { method: "POST", headers: { "content-type": "application/json" }, body: `{"total":${total}}` }
      const response = await fetch(`${origin}/orders`, request).catch(() => undefined)
      const text = await response?.text().catch(() => "")
      if (response !== undefined && response.status >= 500 && response.status !== 503) failed.push(text!)
      return response?.status === 202 ? (JSON.parse(text!) as { id: string }).id : undefined // As the page has it.
    },
    /** The answer to a post without a body. */
    empty: async () => (await fetch(`${origin}/orders`, { method: "POST" })).status,
    /** A client that sends half of a request, and never hangs up. */
    hang: async () => {
      const socket = connect(port, "127.0.0.1").on("error", () => {})
      await once(socket, "connect")
      socket.write("POST /orders HTTP/1.1\r\nhost: 127.0.0.1\r\n")
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
