package bifocal.architecture;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** No class of any module crosses a border. */
class BordersTest {

  @TestFactory
  Stream<DynamicTest> noClassCrosses() {
    JavaClasses classes =
        new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("bifocal");
    return Borders.rules().entrySet().stream()
        .map(rule -> dynamicTest(rule.getKey(), () -> rule.getValue().check(classes)));
  }
}
