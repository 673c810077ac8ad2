import { defined } from '../../../core/kit/defined.ts'
import { directoryMimeType, type Resource, type View } from '../../../core/view.ts'

/**
 * The single resource of a mount, if its listing contains nothing else. `undefined`: the mount has other resources, or is a
 * directory.
 */
export async function singleOf(view: View, mount: Resource): Promise<Resource | undefined> {
  const { items, nextCursor } = await view.directory({ uri: mount.uri })
  if (items.length > 1 || nextCursor !== undefined || (items[0]?.uri ?? mount.uri) !== mount.uri) return undefined
  // If the listing is empty, a read tells whether the mount itself is a resource.
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
