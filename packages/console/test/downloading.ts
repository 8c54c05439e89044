/** Exports, as a browser asks for them. */
import * as Effect from "effect/Effect"
import type { Console } from "../src/index.ts"
import * as World from "./world.ts"

/** The token of a page's forms. */
export const tokenOf = ({ text }: World.Arrived): string => /name="token" value="([^"]+)"/.exec(text)![1]!

/** Asks for an export; its body is not read. */
export const ask = (
  { fetch }: Pick<Console.Console, "fetch">,
  fields: Readonly<Record<string, string>>,
  { headers }: World.Sent = {}
): Effect.Effect<Response> =>
  Effect.promise(() => {
    const forms = { host: "localhost:4747", "content-type": "application/x-www-form-urlencoded" }
    const request = new Request(`${World.origin}/export`, {
      method: "POST",
      body: new URLSearchParams({ broker: "local", queue: "orders.dlq", ...fields }).toString(),
      headers: { ...World.own, ...forms, ...headers }
    })
    return fetch(request, { address: "127.0.0.1" })
  })

/** A file as far as it came. */
export interface File {
  readonly text: string
  readonly isWhole: boolean
}

/** Reads a file to its end, or until it breaks off. */
export const read = (response: Response): Effect.Effect<File> =>
  Effect.promise(async () => {
    const decoder = new TextDecoder()
    let text = ""
    try {
      for await (const part of response.body!) text += decoder.decode(part, { stream: true })
      return { text, isWhole: true }
    } catch {
      return { text, isWhole: false }
    }
  })

/** The lines of a file. */
export const linesOf = ({ text }: File): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")
