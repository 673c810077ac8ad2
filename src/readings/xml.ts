import { Parser } from 'htmlparser2'
import { unreadable } from './formats.ts'
import { targetOf, type Zip } from './zip.ts'

export type Attributes = Readonly<Record<string, string>>

/** Handlers for the elements of an XML document. Names are local: `w:p` is `p`. Attributes have their local names and also
 *  their full names. */
export interface XmlHandlers {
  readonly open?: (name: string, attributes: Attributes) => void
  readonly text?: (text: string) => void
  readonly close?: (name: string) => void
  /** Elements that are passed over, with everything in them. */
  readonly skip?: ReadonlySet<string>
}

const maxDepth = 1000

/**
 * Goes through an XML document, piece by piece. No Office document has a document type definition, so one that has is
 * refused, and with it all entities but the five that need no definition.
 *
 * @throws ResourceError `invalid` for a definition, or elements nested deeper than 1000.
 */
export async function walkXml(pieces: AsyncIterable<Buffer>, handlers: XmlHandlers): Promise<void> {
  let depth = 0
  let skipped = 0
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (++depth > maxDepth) throw unreadable('The document is nested too deep.', 'damaged')
        const local = localName(name)
        if (skipped > 0 || handlers.skip?.has(local) === true) skipped++
        else handlers.open?.(local, attributesOf(attributes))
      },
      ontext: (text) => {
        if (skipped === 0) handlers.text?.(text)
      },
      onclosetag: (name) => {
        depth--
        if (skipped > 0) skipped--
        else handlers.close?.(localName(name))
      },
      onprocessinginstruction: (name) => {
        if (name.startsWith('!'))
          throw unreadable('The document has a document type definition, as no Office document does.', 'damaged')
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  let decoder: InstanceType<typeof TextDecoder> | undefined
  for await (const piece of pieces) {
    // The parts of Office documents are in UTF-8, or in UTF-16 with a mark.
    decoder ??= new TextDecoder(piece[0] === 0xff ? 'utf-16le' : piece[0] === 0xfe ? 'utf-16be' : 'utf-8')
    parser.write(decoder.decode(piece, { stream: true }))
  }
  parser.end(decoder?.decode())
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

function attributesOf(attributes: Readonly<Record<string, string>>): Attributes {
  const found: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(attributes)) {
    found[name] = value
    found[localName(name)] ??= value
  }
  return found
}

/** A relationship of a part: its type, and the part or address that it points to. */
export interface Relationship {
  readonly id: string
  /** The last word of its type: `slide`, `hyperlink`, `officeDocument`. */
  readonly type: string
  readonly target: string
}

/** The relationships of a part; those of the document itself are of the part `''`. */
export async function relationshipsOf(zip: Zip, part: string): Promise<readonly Relationship[]> {
  const slash = part.lastIndexOf('/') + 1
  const name = `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
  if (!zip.has(name)) return []
  const found: Relationship[] = []
  await walkXml(zip.read(name), {
    open: (element, { Id = '', Type = '', Target = '', TargetMode }) => {
      if (element !== 'Relationship' || found.length >= 100_000) return
      const target = TargetMode === 'External' ? Target : targetOf(part, Target)
      found.push({ id: Id, type: Type.slice(Type.lastIndexOf('/') + 1), target })
    },
  })
  return found
}

/** The main part of an Office document. */
export async function mainPartOf(zip: Zip): Promise<string> {
  const main = (await relationshipsOf(zip, '')).find(({ type }) => type === 'officeDocument')
  if (main === undefined) throw unreadable('The document is damaged: it does not say what its main part is.', 'damaged')
  return main.target
}
