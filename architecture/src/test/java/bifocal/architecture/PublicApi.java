package bifocal.architecture;

import bifocal.core.Incubating;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.classfile.AccessFlags;
import java.lang.classfile.Annotation;
import java.lang.classfile.AttributedElement;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.FieldModel;
import java.lang.classfile.MethodModel;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.reflect.AccessFlag;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What modules promise to those who build on them, one line for each class, field and method:
 * everything public or protected in a public class that is not {@link Incubating}. Types are
 * erased, as a linker sees them.
 */
final class PublicApi {
  private static final ClassDesc INCUBATING =
      ClassDesc.of(Incubating.class.getPackageName(), Incubating.class.getSimpleName());
  private static final Set<String> OF_EVERY_OBJECT = Set.of("equals", "hashCode", "toString");
  private static final String ABSTRACT = " [abstract]";

  private final SortedMap<String, ClassModel> classes = new TreeMap<>();
  private final Set<String> incubatingPackages = new HashSet<>();

  private PublicApi() {}

  /** The lines of the modules that these classes are in. */
  static SortedSet<String> of(Class<?>... members) {
    PublicApi api = new PublicApi();
    Stream.of(members).forEach(api::read);
    SortedSet<String> lines = new TreeSet<>();
    api.classes.values().stream().filter(api::promised).forEach(type -> describe(type, lines));
    return lines;
  }

  /** What was promised and is no more. */
  static List<String> removed(Set<String> promised, Set<String> present) {
    return promised.stream().filter(line -> !present.contains(line)).toList();
  }

  /** What an implementor of a promised type would suddenly lack. */
  static List<String> demanded(Set<String> promised, Set<String> present) {
    Set<String> types =
        promised.stream()
            .filter(line -> !line.contains("("))
            .map(line -> line.substring(line.lastIndexOf(' ') + 1))
            .collect(Collectors.toSet());
    return present.stream()
        .filter(line -> line.endsWith(ABSTRACT) && !promised.contains(line))
        .filter(line -> types.contains(line.substring(0, line.indexOf('#'))))
        .toList();
  }

  private void read(Class<?> member) {
    URI place = URI.create(member.getProtectionDomain().getCodeSource().getLocation().toString());
    Path root = Path.of(place);
    try {
      if (Files.isDirectory(root)) {
        readAll(root);
      } else {
        try (FileSystem jar = FileSystems.newFileSystem(root)) {
          readAll(jar.getPath("/"));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void readAll(Path root) throws IOException {
    try (Stream<Path> files = Files.walk(root)) {
      for (Path file : files.filter(f -> f.toString().endsWith(".class")).toList()) {
        ClassModel type = ClassFile.of().parse(Files.readAllBytes(file));
        if (name(type).endsWith(".package-info")) {
          if (incubating(type)) {
            incubatingPackages.add(packageName(type));
          }
        } else {
          classes.put(name(type), type);
        }
      }
    }
  }

  private boolean promised(ClassModel type) {
    if (!visible(type.flags())
        || incubating(type)
        || incubatingPackages.contains(packageName(type))) {
      return false;
    }
    int nested = name(type).lastIndexOf('$');
    if (nested < 0) {
      return true;
    }
    ClassModel outer = classes.get(name(type).substring(0, nested));
    return outer != null && promised(outer) && visibleInside(type);
  }

  /** The class file of a nested class has the access of its scope, not the one that was written. */
  private static boolean visibleInside(ClassModel type) {
    return type.findAttribute(Attributes.innerClasses()).stream()
        .flatMap(inner -> inner.classes().stream())
        .filter(inner -> inner.innerClass().equals(type.thisClass()))
        .allMatch(inner -> inner.has(AccessFlag.PUBLIC) || inner.has(AccessFlag.PROTECTED));
  }

  private static void describe(ClassModel type, Set<String> lines) {
    String name = name(type);
    lines.add(kind(type) + " " + name);
    boolean open = !type.flags().has(AccessFlag.FINAL) && !sealed(type);
    for (FieldModel field : type.fields()) {
      if (visible(field.flags()) && !incubating(field)) {
        lines.add(
            name
                + "#"
                + field.fieldName().stringValue()
                + " : "
                + readable(field.fieldTypeSymbol())
                + suffix(field.flags(), false));
      }
    }
    for (MethodModel method : type.methods()) {
      if (visible(method.flags())
          && !incubating(method)
          && !method.flags().has(AccessFlag.SYNTHETIC)
          && !OF_EVERY_OBJECT.contains(method.methodName().stringValue())) {
        lines.add(
            name
                + "#"
                + method.methodName().stringValue()
                + parameters(method.methodTypeSymbol())
                + " : "
                + readable(method.methodTypeSymbol().returnType())
                + suffix(method.flags(), open));
      }
    }
  }

  private static String kind(ClassModel type) {
    AccessFlags flags = type.flags();
    String kind =
        flags.has(AccessFlag.ANNOTATION)
            ? "annotation"
            : flags.has(AccessFlag.INTERFACE)
                ? "interface"
                : flags.has(AccessFlag.ENUM)
                    ? "enum"
                    : type.findAttribute(Attributes.record()).isPresent() ? "record" : "class";
    return sealed(type) ? "sealed " + kind : kind;
  }

  private static boolean sealed(ClassModel type) {
    return type.findAttribute(Attributes.permittedSubclasses()).isPresent();
  }

  private static String suffix(AccessFlags flags, boolean open) {
    if (flags.has(AccessFlag.STATIC)) {
      return " [static]";
    }
    return open && flags.has(AccessFlag.ABSTRACT) ? ABSTRACT : "";
  }

  private static String parameters(MethodTypeDesc type) {
    return type.parameterList().stream()
        .map(PublicApi::readable)
        .collect(Collectors.joining(", ", "(", ")"));
  }

  private static String readable(ClassDesc type) {
    return type.isArray()
        ? readable(type.componentType()) + "[]"
        : type.packageName().isEmpty() || type.packageName().startsWith("java.")
            ? type.displayName()
            : type.packageName() + "." + type.displayName();
  }

  private static boolean visible(AccessFlags flags) {
    return flags.has(AccessFlag.PUBLIC) || flags.has(AccessFlag.PROTECTED);
  }

  private static boolean incubating(AttributedElement element) {
    return element.findAttribute(Attributes.runtimeVisibleAnnotations()).stream()
        .flatMap(annotations -> annotations.annotations().stream())
        .map(Annotation::classSymbol)
        .anyMatch(INCUBATING::equals);
  }

  private static String name(ClassModel type) {
    return type.thisClass().asInternalName().replace('/', '.');
  }

  private static String packageName(ClassModel type) {
    return name(type).substring(0, Math.max(0, name(type).lastIndexOf('.')));
  }
}
