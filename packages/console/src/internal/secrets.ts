/** Secrets in texts that come from brokers and their drivers. */

/** A copy of a value whose texts are struck, the names in it as well. */
export const struck = (value: unknown, strike: (text: string) => string): unknown => {
  if (typeof value === "string") return strike(value)
  if (typeof value !== "object" || value === null) return value
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (Array.isArray(value)) return value.map((each) => struck(each, strike))
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [strike(name), struck(each, strike)]))
}

/** The text in the place of a secret. */
const mark = "***"

/** Strikes out the passwords of all URLs, and each of the secrets, wherever they stand. */
export const strike = (text: string, secrets: ReadonlyArray<string> = []): string =>
  secrets
    .toSorted((one, other) => other.length - one.length)
    .reduce((struck, secret) => struck.replaceAll(secret, mark), text)
    .replace(/(?<![a-z\d+.-])([a-z][a-z\d+.-]{0,31}:\/\/[^\s:@/]*):[^\s/"'<>]*@/gi, `$1:${mark}@`)
