import { isCompoundFile, openCompoundFile } from '../../src/readings/binary/compound.ts'

/**
 * The records of a presentation of PowerPoint 97 to 2003 that its last edit uses ([MS-PPT], 2.1.2), in Latin; the whole file if it
 * is damaged. Records of earlier edits stay in a file, and catppt reads them too.
 */
export function usedRecords(bytes: Buffer): string {
  try {
    const file = isCompoundFile(bytes) ? openCompoundFile(bytes, 2 ** 28) : undefined
    const [stream, user] = [file?.stream('PowerPoint Document'), file?.stream('Current User')]
    if (stream === undefined || user === undefined) return bytes.toString('latin1')
    return placesIn(stream, user.readUInt32LE(16))
      .map((place) => stream.toString('latin1', place, place + 8 + stream.readUInt32LE(place + 4)))
      .join('\n')
  } catch {
    return bytes.toString('latin1')
  }
}

/** The offsets of the records in use: a later edit replaces the places that earlier ones tell. */
function placesIn(stream: Buffer, lastEdit: number): readonly number[] {
  const places = new Map<number, number>()
  const seen = new Set<number>()
  for (let edit = lastEdit; edit !== 0 && !seen.has(edit); edit = stream.readUInt32LE(edit + 16)) {
    seen.add(edit)
    const directory = stream.readUInt32LE(edit + 20)
    const end = directory + 8 + stream.readUInt32LE(directory + 4)
    for (let at = directory + 8; at < end; ) {
      const head = stream.readUInt32LE(at)
      const [first, count] = [head & 0xfffff, head >>> 20]
      for (let index = 0; index < count; index++)
        if (!places.has(first + index)) places.set(first + index, stream.readUInt32LE(at + 4 + index * 4))
      at += 4 + count * 4
    }
  }
  return [...places.values()]
}
