/** Secrets in texts that come from brokers and their drivers. */

/** Returns a copy of a value with its texts and names replaced. */
export const struck = (value: unknown, strike: (text: string) => string): unknown => {
  if (typeof value === "string") return strike(value)
  if (typeof value !== "object" || value === null) return value
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (Array.isArray(value)) return value.map((each) => struck(each, strike))
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [strike(name), struck(each, strike)]))
}

/** The text that replaces a secret. */
const mark = "***"

/** Replaces the passwords of URLs and all given secrets in a text. */
export const strike = (text: string, secrets: ReadonlyArray<string> = []): string =>
  secrets
    .toSorted((one, other) => other.length - one.length)
    .reduce((struck, secret) => struck.replaceAll(secret, mark), text)
    .replace(/(?<![a-z\d+.-])([a-z][a-z\d+.-]{0,31}:\/\/[^\s:@/]*):[^\s/"'<>]*@/gi, `$1:${mark}@`)
