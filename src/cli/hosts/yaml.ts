import { type Document, isScalar, parseDocument, Scalar, visit } from 'yaml'
import { toUnicodeEscape } from '../../core/entry.ts'
import { type Json, lineEndOf, nestedValue, type SettingsEditor, settingsError } from './types.ts'

/** Comments, order and quotes stay; the library may change spaces. */
export const yamlEditor: SettingsEditor = {
  parse: (text) => parseYamlDocument(text).toJS() as unknown,
  set: (text, path, value) => {
    const document = parseYamlDocument(text)
    const holder = path.slice(0, -1)
    const node = document.getIn(holder, true)
    // A key without a value gets a map, and its comment stays.
    if (isScalar(node) && node.value === null) {
      const map = document.createNode({})
      map.commentBefore = node.comment ?? null
      document.setIn(holder, map)
    }
    document.setIn(path, createYamlNode(document, value))
    return written(document, text)
  },
  remove: (text, path) => {
    const document = parseYamlDocument(text)
    document.deleteIn(path)
    return written(document, text)
  },
  show: (path, value) => {
    const document = parseYamlDocument('')
    document.contents = createYamlNode(document, nestedValue(path, value))
    return written(document, '')
  },
}

function parseYamlDocument(text: string): Document {
  const document: Document = parseDocument(text)
  const [error] = document.errors
  if (error !== undefined) throw settingsError(text, error.pos[0], 'this is not YAML. Fix it first.')
  return document
}

/** Parsers of YAML 1.1 and 1.2 agree on control characters only in double quotes. */
function createYamlNode(document: Document, value: Json) {
  const node = document.createNode(value)
  visit(node, {
    Scalar: (_, scalar) => {
      if (/[\p{Cc}\u2028\u2029\ufeff]/u.test(String(scalar.value))) scalar.type = Scalar.QUOTE_DOUBLE
    },
  })
  return node
}

/**
 * Line ends of YAML 1.1 that YAML 1.2 does not have, and other characters that a parser may change or refuse without an
 * escape.
 */
const unusual = /[\u007f-\u009f\u2028\u2029\ufeff]/g

/** Returns the text of a document, with the indentation and the line ends of the text that it was read from. */
function written(document: Document, text: string): string {
  const indent = /^( +)[^\s#-]/m.exec(text)?.[1]?.length ?? 2
  const indentSeq = !/^( *)[^\s#][^\n]*:\s*\n\1- /m.test(text)
  return document
    .toString({ indent, indentSeq, lineWidth: 0 })
    .replace(unusual, toUnicodeEscape)
    .replaceAll('\n', lineEndOf(text))
}
