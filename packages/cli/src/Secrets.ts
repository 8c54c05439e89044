/** Passwords in URLs of a command line, which no output may repeat. */

/** Replaces the passwords of all URLs among the arguments; each is looked for as it is written, as it is meant, and in JSON. */
export const mask = (text: string, args: ReadonlyArray<string>): string =>
  args
    .flatMap((arg) => /^(?:--\w+=)?(\w[\w+.-]*:\/\/[^/]*@.*)$/.exec(arg)?.[1] ?? [])
    .flatMap((url) => passwordsOf(url))
    // Shorter ones would be found in words.
    .filter((password) => password.length > 2)
    .reduce((masked, password) => masked.replaceAll(password, "***"), text)

const passwordsOf = (url: string): ReadonlyArray<string> => {
  const password = URL.parse(url)?.password ?? ""
  try {
    const meant = decodeURIComponent(password)
    return [password, meant, JSON.stringify(meant).slice(1, -1)]
  } catch {
    return [password]
  }
}
