/** Applies a unified diff to a text, as `patch` does; throws if it does not fit exactly. */
export function applyDiff(before: string, diff: string): string {
  const old = before.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const lines = diff.match(/[^\n]*\n/g) ?? []
  const result: string[] = []
  let at = 0
  for (let i = 0; i < lines.length; ) {
    const [, from, count = '1'] = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n$/.exec(lines[i] ?? '') ?? []
    if (from === undefined) throw new Error(`This is no hunk: ${lines[i]}`)
    const start = count === '0' ? Number(from) : Number(from) - 1
    result.push(...old.slice(at, start))
    at = start
    for (i++; i < lines.length && !lines[i]?.startsWith('@@ '); i++) {
      const line = lines[i] ?? ''
      if (line.startsWith('\\')) continue
      const isLast = lines[i + 1]?.startsWith('\\') === true
      const text = isLast ? line.slice(1, -1) : line.slice(1)
      if (line.startsWith('+')) result.push(text)
      else {
        if (old[at] !== text)
          throw new Error(`Line ${at + 1} is ${JSON.stringify(old[at])}, not ${JSON.stringify(text)}.`)
        if (line.startsWith(' ')) result.push(text)
        at++
      }
    }
  }
  return [...result, ...old.slice(at)].join('')
}
