package orders;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.jackson.Jackson2ObjectMapperBuilderCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Whether each thread keeps the buffers of Jackson's parser for its next request, which is Jackson's default. */
@Configuration
public class JsonBuffers {
    @Bean
    Jackson2ObjectMapperBuilderCustomizer buffers(@Value("${orders.reuse-buffers:true}") boolean reuse) {
        return builder -> builder.factory(new JsonFactoryBuilder()
                .configure(JsonFactory.Feature.USE_THREAD_LOCAL_FOR_BUFFER_RECYCLING, reuse)
                .build());
    }
}
