/** Passwords in URLs of a command line, which no output may repeat. */

/** Replaces the passwords of all URLs among the arguments; each is looked for as it is written and as it is meant. */
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
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}
