/** Secrets in texts that come from brokers and their drivers. */

/** The text in the place of a secret. */
const mark = "***"

/** Strikes out the passwords of all URLs, and each of the secrets, wherever they stand. */
export const strike = (text: string, secrets: ReadonlyArray<string> = []): string =>
  secrets
    .toSorted((one, other) => other.length - one.length)
    .reduce((struck, secret) => struck.replaceAll(secret, mark), text)
    .replace(/(?<![a-z\d+.-])([a-z][a-z\d+.-]{0,31}:\/\/[^\s:@/]*):[^\s/"'<>]*@/gi, `$1:${mark}@`)
