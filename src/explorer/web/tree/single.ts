import { defined } from '../../../core/kit/defined.ts'
import { directoryMimeType, type Resource, type View } from '../../../core/view.ts'

/** The resource that a mount is, where its listing holds nothing but itself. `undefined`: other resources lie in it, or it is a directory. */
export async function singleOf(view: View, mount: Resource): Promise<Resource | undefined> {
  const { items, nextCursor } = await view.directory({ uri: mount.uri })
  if (items.length > 1 || nextCursor !== undefined || (items[0]?.uri ?? mount.uri) !== mount.uri) return undefined
  // A read of an empty listing tells whether the mount is something itself.
  const [item = mount] = items
  const [content] = items.length === 0 ? (await view.read(mount.uri)).contents : []
  const mimeType = content?.mimeType ?? item.mimeType
  if (mimeType === directoryMimeType) return undefined
  const { title = item.title } = mount
  return {
    ...item,
    ...defined({ mimeType, title }),
  }
}
