import { notFound } from '../../core/errors.ts'
import type { ProvidedTool, ToolPart, Tools } from '../../core/provided-tool.ts'
import { redactPhrase } from '../../secrets/find.ts'
import type { Cleaner } from './cleaner.ts'
import { cleanEntry, cleanMeta, cleanValue, isSecretPath, type Seal } from './facts.ts'

/** Returns tools with secrets removed from their descriptions, schemas and results. */
export function cleanTools(tools: Tools, cleaner: Cleaner, seal: Seal): Tools {
  /** Returns undefined for a part with a secret in its path. */
  const cleanPart = async (part: ToolPart, path: string, signal: AbortSignal): Promise<ToolPart | undefined> => {
    if ('link' in part) return part
    if ('entry' in part) return isSecretPath(part.entry.path) ? undefined : { entry: cleanEntry(part.entry, seal) }
    if ('content' in part) {
      const { content } = part
      if (isSecretPath(content.path)) return undefined
      return { content: { ...(await cleaner.whole(content, content.path, signal)), path: content.path } }
    }
    const clean = await cleaner.whole(part, path, signal)
    if ('text' in part || !('bytes' in clean)) return { text: 'text' in clean ? clean.text : '' }
    return { bytes: clean.bytes, mimeType: part.mimeType }
  }
  /** Scans JSON as a text of its own, too: a secret may be found only together with the key beside it. */
  const cleanStructured = async (value: Readonly<Record<string, unknown>>, path: string, signal: AbortSignal) => {
    const text = JSON.stringify(value)
    const clean = await cleaner.whole({ text, mimeType: 'application/json' }, `${path}.json`, signal)
    if ('text' in clean && clean.text === text) return value
    return cleanValue(parsed('text' in clean ? clean.text : '') ?? {}, 0) as Readonly<Record<string, unknown>>
  }
  return {
    list: async (context) =>
      (await tools.list(context)).filter(({ path, name }) => !isSecretPath(path) && !isSecretPath(name)).map(cleanTool),
    call: async (request, context) => {
      const { path, report } = request
      const { signal } = context
      if (isSecretPath(path)) throw notFound('a secret in the path')
      const clean =
        report &&
        (({ message, ...rest }: Parameters<typeof report>[0]) =>
          report({ ...rest, ...(message === undefined ? {} : { message: redactPhrase(message) }) }))
      const asked = clean === undefined ? request : { ...request, report: clean }
      const { parts, structured, ...rest } = await tools.call(asked, context)
      const shown: ToolPart[] = []
      for (const part of parts) {
        const one = await cleanPart(part, path, signal)
        if (one !== undefined) shown.push(one)
      }
      const told = structured && (await cleanStructured(structured, path, signal))
      return { ...rest, parts: shown, ...(told === undefined ? {} : { structured: told }) }
    },
  }
}

function cleanTool({ title, description, meta, inputSchema, outputSchema, ...rest }: ProvidedTool): ProvidedTool {
  return {
    ...rest,
    inputSchema: cleanValue(inputSchema, 0, maxSchemaDepth) as ProvidedTool['inputSchema'],
    ...(title === undefined ? {} : { title: redactPhrase(title) }),
    ...(description === undefined ? {} : { description: redactPhrase(description) }),
    ...cleanMeta(meta),
    ...(outputSchema === undefined
      ? {}
      : { outputSchema: cleanValue(outputSchema, 0, maxSchemaDepth) as ProvidedTool['inputSchema'] }),
  }
}

/** Maximum depth of a schema. Deeper parts are left out. */
const maxSchemaDepth = 64

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
