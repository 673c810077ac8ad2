/**
 * The lines of each kind of diagram that the library draws as they are meant. It leaves out what it does not know and says nothing: a diagram
 * with any other line is shown as its source instead.
 */
const word = '[\\p{L}\\p{N}_.-]+'
const state = `(?:\\[\\*\\]|[\\w\\p{L}-]+)`

const known: Readonly<Record<string, readonly RegExp[]>> = {
  sequenceDiagram: [
    new RegExp(`^(?:participant|actor)\\s+${word}(?:\\s+as\\s+.+)?$`, 'u'),
    new RegExp(`^${word}\\s*(?:->>|-->>|->|-->)\\s*[+-]?${word}\\s*:\\s*.+$`, 'u'),
    /^note\s+(?:left of|right of|over)\s+[^:]+:\s*.+$/i,
    /^(?:loop|alt|opt|par|critical|break|else|and)(?:\s.*)?$/,
    /^end$/,
    /^(?:activate|deactivate)\s+\S+$/,
  ],
  stateDiagram: [
    new RegExp(`^${state}\\s*-->\\s*${state}(?:\\s*:\\s*.+)?$`, 'u'),
    /^state\s+(?:"[^"]+"\s+as\s+)?[\w\p{L}]+\s*\{$/u,
    /^state\s+"[^"]+"\s+as\s+[\w\p{L}]+$/u,
    /^[\w\p{L}-]+\s*:\s*.+$/u,
    /^direction\s+(?:TD|TB|LR|RL|BT)$/i,
    /^\}$/,
  ],
  classDiagram: [
    /^class\s+[\w\p{L}]+\s*\{?$/u,
    /^\}$/,
    /^[\w\p{L}]+\s*:\s*.+$/u,
    /^[\w\p{L}]+\s+(?:"[^"]*"\s+)?(?:<\|--|--\|>|\*--|--\*|o--|--o|-->|<--|--|\.\.>|<\.\.|\.\.\|>|<\|\.\.)\s+(?:"[^"]*"\s+)?[\w\p{L}]+(?:\s*:\s*.+)?$/u,
    /^<<\w+>>$/,
    // The members of a class.
    /^[+\-#~]?[\w\p{L}].*$/u,
  ],
  erDiagram: [
    /^\S+\s+[|o}{]{2}(?:--|\.\.)[|o}{]{2}\s+\S+\s*:\s*.+$/,
    /^\S+\s*\{$/,
    /^\}$/,
    /^\S+\s+\S+(?:\s+(?:PK|FK|UK)(?:\s*,\s*(?:PK|FK|UK))*)?(?:\s+"[^"]*")?$/,
  ],
}

/** Whether each line of a diagram is one that its library draws. */
export function isDrawnWhole(kind: string, lines: readonly string[]): boolean {
  const patterns = known[kind] ?? []
  let depth = 0
  for (const line of lines) {
    if (!patterns.some((pattern) => pattern.test(line))) return false
    // Members belong into a class or an entity; outside of one they would be lines of another meaning.
    const isMember = kind === 'classDiagram' && patterns.slice(0, -2).every((pattern) => !pattern.test(line))
    if (isMember && depth === 0) return false
    if (line.endsWith('{')) depth++
    if (line === '}') depth--
    if (depth < 0) return false
  }
  return depth === 0
}
